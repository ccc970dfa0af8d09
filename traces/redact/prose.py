"""Running text: "the password for the admin account is X", in the languages people write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traces.redact.literal import is_password_like, is_placeholder, is_sentence, is_shaped
from traces.redact.marker import Span

# How far behind the word its value can begin.
REACH = 112

_PASSWORD_WORDS = (
    "password", "passphrase", "passcode", "passwd", "pwd", "pw", "pass", "ntlm hash", "nt hash", "password hash", "hashed password", "passwort", "kennwort", "zugangsdaten", "losungswort",
    "mot de passe", "mdp", "identifiants", "phrase secrète", "contraseña", "contrasena", "clave", "senha",
    "palavra-passe", "palavra passe", "parola d'ordine", "parola", "wachtwoord", "lösenord", "lösenordet", "passord",
    "adgangskode", "kodeord", "salasana", "heslo", "heslem", "hasło", "hasłem", "hasła", "jelszó", "jelszava", "şifre", "sifre",
    "пароль", "пароля", "паролем", "парол", "κωδικός", "密码", "密碼", "口令", "パスワード", "暗証", "비밀번호", "암호", "كلمة المرور",
    "كلمة السر", "الرقم السري", "סיסמה", "רمز عبور", "رمز عبور", "पासवर्ड", "mật khẩu", "kata sandi", "รหัสผ่าน", "parole",
    "lozinka", "log in as", "login as", "sign in as", "log in with", "login with", "salasõna", "slaptažodis", "geslo", "creds", "credentials", "login details", "logins",
)  # fmt: skip
_KEY_WORDS = (
    "api key", "api-key", "apikey", "api-schlüssel", "api schlüssel", "schlüssel", "clé api", "clé d'api", "clé", "jeton", "clave api", "clave de api",
    "clave secreta", "chave", "chiave", "sleutel", "klucz", "ключ", "токен", "секрет", "секретный", "token", "secret",
    "access key", "secret key", "private key", "signing key", "encryption key", "unseal key", "recovery key", "master key", "account key",
    "license key", "api token", "bearer", "密钥", "密鑰", "金鑰", "令牌", "权杖", "トークン", "シークレット", "キー", "토큰", "시크릿", "키", "anahtar",
    "avain", "nyckel", "kulcs", "klíč", "रहस्य", "टोकन", "geheimnis", "geheim", "segreto", "segredo", "secreto", "backup code", "recovery code",
    "scratch code", "backup codes", "recovery codes", "scratch codes", "wiederherstellungscode", "code de secours",
)  # fmt: skip
PROSE_WORDS: dict[str, bool] = {
    **dict.fromkeys(_KEY_WORDS, False),
    **dict.fromkeys(_PASSWORD_WORDS, True),
}

_OPENING = "\"'`\u201c\u2018\u300c\u300e\u00ab\u201e*<("
_COPULA_WORDS = (
    "is|was|are|be|equals|to|as|lautet|ist|war|sind|heißt|est|était|sont|es|era|son|é|foi|è|sono|jest|brzmi|"
    "är|er|on|je|van|oldu|adalah|là|este|yra|है|هي|هو|будет|это|будут|είναι|היא|הוא|auf|en|a|à|na|на|naar|till|set to|changed to|reset to"
)
_COPULA_SIGNS = "\u2014|\u2013|->|=>|\u2192|=|:|\uff1a|\uff1d|是|为|為|は|が|คือ|는|은|이|가|- "
# The value stands right behind the word: `password hunter2x`, or, after a Chinese word, without a blank.
_DIRECT = re.compile(
    rf"""[ \t]{{1,3}}(?P<open>[{_OPENING}]{{1,3}}[ \u00a0]?)?(?P<v>[!-~]{{4,200}})"""
)
_ADJACENT = re.compile(rf"""[ ]?(?P<open>[{_OPENING}]{{1,3}})?(?P<v>[!-~]{{4,200}})""")
# Or behind a verb or sign that links the two, somewhere in the same sentence.
_SENTENCE = re.compile(r"[^\n.;?!\u3002{}]{0,96}")
_LINK = re.compile(
    rf"""(?:(?<!\w)(?:{_COPULA_WORDS})(?!\w)|{_COPULA_SIGNS})"""
    rf"""(?:[ ]?(?:now|jetzt|ahora|maintenant|set to|just|simply|also|still|currently|:|\uff1a))?"""
    rf"""(?:[ \t\u00a0]{{0,3}}|[ \t]{{0,3}}(?:\r?\n[ \t]{{0,8}}){{1,3}}(?=[!-~]{{6,200}}[ \t]{{0,3}}(?:\r?\n|\Z)))(?P<open>[{_OPENING}]{{1,3}}[ \u00a0]?)?(?P<v>[!-~]{{4,200}})"""
)
_LINK_START = re.compile(rf"(?<!\w)(?:{_COPULA_WORDS})(?!\w)|{_COPULA_SIGNS}")
_MAX_LINKS = 4
# `password="…` is an assignment, which another rule reads.
_ASSIGNED = re.compile(r"""["']?[ ]?[=:][ ]?["'][^"']""")


def _is_quoted(found: re.Match[str]) -> bool:
    return any(char in "\"'`\u201c\u2018\u300c\u300e\u00ab\u201e" for char in found["open"] or "")


_CLOSING = re.compile("[\"'`*)>\u201d\u300d\u300f\u00bb\u201c]")
_ENDING = ".,;:)]}>\"'`*"
_BACKWARD = re.compile(
    r"""(?:^|(?<=[\s"'`(\u201c]))(?P<v>[!-~]{6,64}?)["'`\u201d),]{0,2}\s{1,2}(?:\(|(?:as|is|was|for|als|como|comme|ist|es|est|è|é|to|jako|som|wordt|is now)\s{1,2})(?:(?:the|my|your|our|its|his|her|their|a|das|mein|dein|ihr|unser|la|le|mi|su|il|meu|minha|o|het|mijn|new|root|admin|database|db|login|user|wifi|api|master|temporary|initial|current|service|account|staging|prod|production|test|user's)\s{1,2}){0,4}\Z""",
    re.IGNORECASE,
)
_USER_PASSWORD = re.compile(
    rf"""[ \t]{{0,3}}(?:(?:{_COPULA_WORDS})[ ])?[:\uff1a=]?[ \t]{{0,3}}["'`]?(?P<u>[\w.@+-]{{2,64}})\s{{0,2}}[/:|,]\s{{0,2}}["'`]?(?P<v>[!-~]{{6,64}})"""
)
_CODE_LINES = re.compile(
    r"[^\n]{0,60}?:?[ \t]*(?P<v>(?:(?:\r?\n)?[ \t,*-]{0,4}(?:\d{1,2}[.)][ ])?(?=[A-Za-z-]{0,12}\d)[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){0,4}(?=[\s,]|\Z)){2,20})"
)


def find_prose(text: str, start: int, end: int, word: str) -> Iterator[Span]:
    """Find the value that a sentence gives to the secret named by `word` at `start`."""
    end = _word_end(text, end, word)
    if _ASSIGNED.match(text, end):
        return
    if not _is_word(text, start, end, word):
        return
    is_password = PROSE_WORDS[word]
    label = "password" if is_password else "secret"
    if not is_password and "codes" in word:
        yield from _codes(text, end)
    for found, linked in _candidates(text, end, word):
        span = _value_span(text, found, label)
        if span is not None and _is_value(
            text[span.start : span.end],
            quoted=_is_quoted(found),
            linked=linked,
            is_password=is_password,
        ):
            yield span
            return
    if is_password:
        yield from _after_user(text, end, label)
        yield from _backward(text, start, label)


def _after_user(text: str, end: int, label: str) -> Iterator[Span]:
    """`credentials: root / X`: the value behind a user name."""
    found = _USER_PASSWORD.match(text, end)
    if found is None or "//" in found.group():
        return
    value = found["v"].rstrip(_ENDING)
    if is_password_like(value):
        yield Span(found.start("v"), found.start("v") + len(value), label)


def _word_end(text: str, end: int, word: str) -> int:
    """Other languages put endings on the word: take up to six letters more."""
    if word in _ENGLISH or _is_unspaced(word):
        return end + 1 if text[end : end + 1] == "s" and word in _ENGLISH else end
    found = _SUFFIX.match(text, end)
    return found.end() if found else end


def _is_unspaced(word: str) -> bool:
    """Chinese, Japanese, Korean and Thai put no blanks between words."""
    return ord(word[-1]) > 0x2000 or "\u0e00" <= word[-1] <= "\u0eff"


_SUFFIX = re.compile(r"[^\W\d_]{1,6}(?![\w])")
_ENGLISH = frozenset(
    "password passphrase passcode passwd pwd pw creds credentials pass token secret bearer mdp api-key apikey logins".split()
) | {word for word in PROSE_WORDS if " " in word}


def _is_word(text: str, start: int, end: int, word: str) -> bool:
    if _is_unspaced(word):
        return True
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "-" and text[start - 2 : start - 1].isalpha() and after in (" ", ":"):
        return True
    if (before.isalnum() and before.isascii()) or (before and before in "_-/.$<{"):
        return False
    return not (after.isalnum() and after.isascii()) and (not after or after not in "_(/")


def _candidates(text: str, end: int, word: str) -> Iterator[tuple[re.Match[str], bool]]:
    direct = (_DIRECT if word.isascii() or not _is_unspaced(word) else _ADJACENT).match(text, end)
    if direct:
        yield direct, False
    sentence = _SENTENCE.match(text, end)
    stop = sentence.end() if sentence else end
    at = end
    for _ in range(_MAX_LINKS):
        start = _LINK_START.search(text, at, stop + 1)
        if start is None:
            return
        link = _LINK.match(text, start.start())
        if link:
            yield link, True
        at = start.start() + 1


def _value_span(text: str, found: re.Match[str], label: str) -> Span | None:
    first, value = found.start("v"), found["v"]
    if found["open"] and not _is_quoted(found):
        value = re.split(r"[)*>]", value)[0]
    elif found["open"]:
        closing = _CLOSING.search(text, first, first + 120)
        value = text[first : closing.start()].rstrip() if closing else value
        if "\n" in value or (" " in value and (is_sentence(value) or len(value) < 12)):
            value = value.split()[0]
    while value and value[-1] in _ENDING:
        value = value[:-1]
    if len(value) < 4:
        return None
    return Span(first, first + len(value), label)


def _is_value(value: str, *, quoted: bool, linked: bool, is_password: bool) -> bool:
    if (
        is_placeholder(value)
        or is_sentence(value)
        or value.startswith(("$", "--", "(", "{", "=", "/", "[", "@", "&"))
        or ("&" in value and "=" in value)
    ):
        return False
    if not is_password:
        return (len(value) >= 12 and is_password_like(value) and _many_digits(value)) or (
            linked and quoted and is_shaped(value, 8)
        )
    if " " in value:
        return quoted
    if not is_password_like(value):
        return (
            quoted
            and linked
            and value.isalpha()
            and len(value) >= 6
            and not value.islower()
            and not value.istitle()
            and not value.isupper()
        )
    if linked or quoted:
        return True
    return len(value) >= 8


_PIN = re.compile(
    r"PIN(?:[ -]?(?:code|Code|number|Nummer))?[ ]?(?:(?:is|ist|lautet|est|es|è)[ ])?[:=]?[ ]?(?P<v>\d{4,8})(?![\w.,%])"
)


def find_pin(text: str, start: int) -> Iterator[Span]:
    """Find the number behind PIN, which only capitals tell from a pin of a chip."""
    found = _PIN.match(text, start)
    if found:
        yield Span(found.start("v"), found.end("v"), "pin")


def _many_digits(value: str) -> bool:
    return sum(c.isdigit() for c in value) >= 2 and "=" not in value[:-2]


def _codes(text: str, end: int) -> Iterator[Span]:
    found = _CODE_LINES.match(text, end)
    if found and sum(c.isdigit() for c in found["v"]) >= 4:
        yield Span(found.start("v"), found.end("v"), "secret")


def _backward(text: str, start: int, label: str) -> Iterator[Span]:
    window = text[max(0, start - 110) : start]
    offset = max(0, start - 110)
    found = _BACKWARD.search(window)
    if found is None:
        return
    value = found["v"].strip("\"'`,")
    if len(value) >= 8 and is_password_like(value) and any(c.isdigit() for c in value):
        first = offset + found.start("v") + found["v"].index(value)
        yield Span(first, first + len(value), label)
