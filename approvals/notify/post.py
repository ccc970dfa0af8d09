"""One POST to an address that somebody entered: no redirect, no private network, an end in any case."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from approvals.notify.errors import Undeliverable

TIMEOUT_S = 5.0
# A server that sends its answer byte by byte never runs into the other one.
WHOLE_S = 15.0
# Both carry an IPv4 address at their end; the second is the old IPv4-compatible form.
_CARRIERS = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """The status that the server answered; its body is not read. OSError or Undeliverable if it
    did not.
    """
    parts = checked(url)
    address = resolve(parts.hostname or "", _port(parts))
    connection = _Pinned(parts, address)
    watchdog = threading.Timer(WHOLE_S, connection.cut)
    watchdog.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = {"Content-Type": "application/json", "User-Agent": "interlock", **headers}
        connection.request("POST", path, body=body, headers=sent)
        return connection.getresponse().status
    except http.client.HTTPException as error:
        raise Undeliverable(f"it did not answer in HTTP ({type(error).__name__})") from error
    except UnicodeError:
        raise Undeliverable("its address has characters that have to be percent-encoded") from None
    finally:
        watchdog.cancel()
        connection.close()


def checked(url: str) -> SplitResult:
    """The parts of an address that may be posted to; Undeliverable says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Undeliverable("the address is not a URL") from None
    if parts.username or parts.password or not parts.hostname or port == 0:
        raise Undeliverable("the address must have a host and no user or password")
    allowed = ("https", "http") if settings.INTERLOCK_WEBHOOK_PRIVATE else ("https",)
    if parts.scheme not in allowed:
        raise Undeliverable(f"the address must start with {' or '.join(allowed)}")
    return parts


def resolve(host: str, port: int) -> str:
    """The one IP address that is connected to. Looked up once: what was checked is what is used."""
    try:
        found = {str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        raise Undeliverable("its host name cannot be resolved") from None
    if not settings.INTERLOCK_WEBHOOK_PRIVATE and not all(map(is_public, found)):
        raise Undeliverable("it is in a private network, which INTERLOCK_WEBHOOK_PRIVATE forbids")
    return min(found)


def is_public(address: str) -> bool:
    """True for an address of the open internet, whatever form it is written in."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.is_site_local:
            return False
        ip = _inner(ip) or ip
    return ip.is_global and not ip.is_multicast


def _inner(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that is reached by way of this one, if there is one in it."""
    if any(ip in carrier for carrier in _CARRIERS):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


class _Pinned(http.client.HTTPConnection):
    """A connection to one IP address, with the name's certificate checked where it is https."""

    def __init__(self, parts: SplitResult, address: str) -> None:
        super().__init__(parts.hostname or "", _port(parts), timeout=TIMEOUT_S)
        self._is_https, self._address = parts.scheme == "https", address
        self.default_port = 443 if self._is_https else 80

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), TIMEOUT_S)
        self.sock = plain
        if self._is_https:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(plain, server_hostname=self.host)

    def cut(self) -> None:
        """End it now, whatever it waits for."""
        with contextlib.suppress(OSError):
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)
