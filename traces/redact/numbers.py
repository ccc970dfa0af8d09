"""Validated numbers and addresses of people: cards, IBAN, SSN, Chinese id, phones, e-mail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traces.redact.marker import Span

_NUMBER = re.compile(r"(?<![\w.\-+#])\(?\+?\d[\d\-() .\u00a0]{5,30}[\dXx](?![\w]|-\w|\.\d|[/:]\d)")
_CARD = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14,17}|3(?:0[0-5]|[68]\d)\d{11}"
)
_CARD_GROUPS = re.compile(
    r"\d{4}([ \-.])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{4}([ \-.])\d{6}\2\d{4,5}"
)
_SSN = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}")
_SSN_HINT = re.compile(
    r"(?:ssn|social security(?: number| no\.?)?|sozialversicherungsnummer)\W{0,4}(?:is\W)?$",
    re.IGNORECASE,
)
_CN_ID = re.compile(r"[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx]")
_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_NANP = re.compile(r"(?:1[ .-])?\(?[2-9]\d\d\)?[ .-]{1,2}[2-9]\d\d[ .-]\d{4}")
_CN_MOBILE = re.compile(r"1[3-9]\d{9}|1[3-9]\d[ -]\d{4}[ -]\d{4}")
_PHONE_HINT = re.compile(
    r"(?:call|phone|tel|telefon|telefono|teléfono|téléphone|telephone|mobile|mobil|handy|cell|fax|whatsapp|sms|text me at|number|nummer|"
    r"numéro|número|contact|dial|reach (?:me|us) (?:at|on)|ring|móvil|portable|celular|тел|телефон|手机号?|手机|电话|電話|联系|携帯|전화)"
    r"(?:[ ]?(?:number|no|nummer|is|at|on|号码|番号|ist|:))?\W{0,6}$",
    re.IGNORECASE,
)
_NOT_PERSONAL = re.compile(
    r"(?:id|ids|ref|reference|seq|sequence|build|order|ticket|epoch|timestamp|ts|offset|size|bytes|port|pid|line|row|rows|version|isbn|issn|ean|sku|"
    r"serial|tracking|commit|rev|revision|account|invoice|hash|nonce|seed|at|time|mtime|sha\d*)[\"'`]?\s{0,2}[=:#]?\s{0,2}[\"'`#]?$",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"(?:19|20)\d\d[-.]\d\d[-.]\d\d")
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?(?![A-Za-z0-9])"
)
_IBAN_CHARS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15,
    "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19,
    "SK": 24, "SM": 27, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9.+_-])[A-Za-z0-9][\w.+'-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w@]|[:/][\w~]|-\w|\()",
    re.ASCII,
)
_NOT_MAIL_ENDINGS = frozenset(
    "py js ts tsx jsx rb go rs java kt cs cpp local internal lan localhost git sh md json yaml yml toml txt html css "
    "service socket timer target mount path slice png jpg jpeg gif svg webp wraps property".split()
)
_NOT_MAIL_NAMES = frozenset("git hg svn noreply no-reply donotreply".split())
_BEFORE_LOGIN = re.compile(
    r"(?:ssh|scp|sftp|rsync|sshpass|mosh|autossh|ssh-copy-id|su)\b[^\n|;&]{0,80}\s$|://[^\s/]{0,80}$"
)


def is_luhn(digits: str) -> bool:
    """Say whether the check digit of a card number is right."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        digit = ord(char) - 48
        if place & 1:
            digit = digit * 2 - 9 if digit > 4 else digit * 2
        total += digit
    return total % 10 == 0


def is_iban(text: str) -> bool:
    """Say whether text is an IBAN: known country, its length, remainder one."""
    plain = re.sub(r"[ -]", "", text)
    if _IBAN_CHARS.get(plain[:2]) != len(plain):
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_cn_id(text: str) -> bool:
    """Say whether text is a Chinese resident id with the right check character."""
    if not _CN_ID.fullmatch(text):
        return False
    total = sum(int(char) * weight for char, weight in zip(text, _CN_WEIGHTS, strict=False))
    return "10X98765432"[total % 11] == text[-1].upper()


def find_numbers(text: str) -> Iterator[Span]:
    """Find cards, SSN, Chinese ids and phone numbers."""
    for found in _NUMBER.finditer(text):
        label = classify_number(text, found.start(), found.group())
        if label:
            yield Span(found.start(), found.end(), label)
            continue
        # Two numbers side by side read as one: try the parts.
        for part in re.finditer(r"[^ \u00a0]+", found.group()):
            if len(part.group()) >= 9 and part.group() != found.group():
                first = found.start() + part.start()
                label = classify_number(text, first, part.group(), alone=False)
                if label:
                    yield Span(first, first + len(part.group()), label)


def classify_number(text: str, start: int, number: str, *, alone: bool = True) -> str | None:
    """Return the class of the number that stands at `start`, or None if it is harmless."""
    digits = re.sub(r"\D", "", number)
    plain = re.sub(r"[ \-.\u00a0]", "", number)
    before = text[max(0, start - 28) : start]
    if _is_card(number, digits, plain) and not (number.isdigit() and _NOT_PERSONAL.search(before)):
        return "card"
    if len(plain) == 18 and is_cn_id(plain):
        return "cn_id"
    if _SSN.fullmatch(number) or (len(digits) == 9 and _SSN_HINT.search(before)):
        return "ssn"
    if not alone:
        return None
    return "phone" if _is_phone(before, number, digits) else None


def _is_card(number: str, digits: str, plain: str) -> bool:
    if not 13 <= len(digits) <= 19 or plain != digits or len(set(digits)) < 2:
        return False
    if not (number.isdigit() or _CARD_GROUPS.fullmatch(number)):
        return False
    return (
        _CARD.fullmatch(digits) is not None
        and is_luhn(digits)
        and not (len(digits) == 13 and number.isdigit())
    )


def _is_phone(before: str, number: str, digits: str) -> bool:
    if number.lstrip("(").startswith("+"):
        return 8 <= len(digits) <= 15 and number.count(".") <= 4
    hinted = _PHONE_HINT.search(before) is not None
    if _ISO_DATE.match(number) or (
        re.fullmatch(r"\d+(?:\.\d+){1,6}", number) and not (hinted and number.count(".") >= 2)
    ):
        return False
    if _NANP.fullmatch(number) and "." not in number[:1]:
        return True
    if _CN_MOBILE.fullmatch(number):
        return hinted or "-" in number or " " in number or _has_cjk(before)
    return hinted and 7 <= len(digits) <= 15 and not _CARD_GROUPS.fullmatch(number)


def _has_cjk(before: str) -> bool:
    return any("\u4e00" <= char <= "\u9fff" for char in before[-12:])


def find_ibans(text: str) -> Iterator[Span]:
    """Find IBAN, also where a word follows that could belong to it."""
    for found in _IBAN.finditer(text):
        value = found.group()
        while len(value) >= 15:
            if is_iban(value):
                yield Span(found.start(), found.start() + len(value), "iban")
                break
            shorter = re.sub(r"[ -][A-Z0-9]{1,4}$", "", value)
            if shorter == value:
                break
            value = shorter


def find_emails(text: str) -> Iterator[Span]:
    """Find e-mail addresses; logins of ssh and git, packages and files are none."""
    for found in _EMAIL.finditer(text):
        first, address = found.start(), found.group()
        if first and text[first - 1] == "\\" and address[0] in "nrt":
            first, address = first + 1, address[1:]
        if _is_mail(text, first, address):
            yield Span(first, found.end(), "email")


def _is_mail(text: str, first: int, address: str) -> bool:
    name, _, domain = address.partition("@")
    if not name or name.lower() in _NOT_MAIL_NAMES:
        return False
    if domain.rsplit(".", 1)[1].lower() in _NOT_MAIL_ENDINGS:
        return False
    before = text[max(0, first - 90) : first]
    if domain.endswith(".iam.gserviceaccount.com") or before[-1:] in (":", "/", "@", "%"):
        return before.endswith("mailto:")
    return _BEFORE_LOGIN.search(before) is None
