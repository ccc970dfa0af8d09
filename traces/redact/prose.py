"""Running text: "the password for the admin account is X", in the languages people write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traces.redact.literal import is_password_like, is_placeholder, is_sentence, is_shaped
from traces.redact.marker import Span

# How far behind the word its value can begin.
REACH = 112

_PASSWORD_WORDS = (
    "password", "passphrase", "passcode", "passwd", "pwd", "passwort", "kennwort", "zugangsdaten", "losungswort",
    "mot de passe", "mdp", "identifiants", "phrase secrète", "contraseña", "contrasena", "clave", "senha",
    "palavra-passe", "palavra passe", "parola d'ordine", "parola", "wachtwoord", "lösenord", "lösenordet", "passord",
    "adgangskode", "kodeord", "salasana", "heslo", "heslem", "hasło", "hasłem", "hasła", "jelszó", "jelszava", "şifre", "sifre",
    "пароль", "пароля", "паролем", "парол", "κωδικός", "密码", "密碼", "口令", "パスワード", "暗証", "비밀번호", "암호", "كلمة المرور",
    "كلمة السر", "الرقم السري", "سيسمה", "סיסמה", "רمز عبور", "رمز عبور", "पासवर्ड", "mật khẩu", "kata sandi", "รหัสผ่าน", "parole",
    "lozinka", "salasõna", "slaptažodis", "geslo", "creds", "credentials", "login details", "logins",
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
_COPULA = (
    r"is|was|are|be|equals|to|as|lautet|ist|war|sind|heißt|est|était|sont|es|era|son|é|foi|è|era|jest|to|brzmi|to jest|"
    r"är|er|on|je|van|oldu|adalah|là|este|yra|—|–|-|->|=>|→|=|:|\uff1a|是|为|為|は|が|는|은|이|가|है|هي|هو|é:|set to|"
    r"changed to|reset to|\u0451\u0441\u0442\u044c|будет|это|то"
)
_DIRECT = re.compile(rf"""(?:[ \t]{{0,3}}[:=\uff1a\u2014\u2013-]?[ \t]{{0,3}}|[ ]?(?:is|{_COPULA})[ ]?:?[ ]{{0,2}})(?P<open>[{_OPENING}]{{1,3}})?(?P<v>[!-~]{{4,200}})""")
_LINKED = re.compile(
    rf"""(?P<gap>[^\n.;?!\u3002{{}}]{{0,72}}?)(?:(?<=[^\w])|(?<=[^\x00-\x7f]))(?:{_COPULA})(?:[ ]?(?:now|jetzt|ahora|maintenant|set to|just|simply|:|\uff1a))?[ \t]{{0,3}}(?P<open>[{_OPENING}]{{1,3}})?(?P<v>[!-~]{{4,200}})"""
)
_ENDING = ".,;:)]}>\"'`*"
_BACKWARD = re.compile(
    r"""(?:^|(?<=[\s"'`(\u201c]))(?P<v>[!-~]{6,64}?)["'`\u201d),]{0,2}\s{1,2}(?:as|is|was|for|als|como|comme|ist|es|est|è|é|to|jako|som|wordt|is now)\s{1,2}(?:(?:the|my|your|our|its|his|her|their|a|das|mein|dein|ihr|unser|la|le|mi|su|il|meu|minha|o|het|mijn|new|root|admin|database|db|login|user|wifi|api|master|temporary|initial|current)\s{1,2}){0,4}\Z""",
    re.IGNORECASE,
)
_USER_PASSWORD = re.compile(r"""[ \t]{0,3}[:\uff1a=]?[ \t]{0,3}["'`]?(?P<u>[\w.@+-]{2,64})\s{0,2}[/:|]\s{0,2}(?P<v>[!-~]{6,64})""")
_CODE_LINES = re.compile(r"[^\n]{0,60}:?[ \t]*(?P<v>(?:(?:\r?\n)?[ \t,*-]{0,4}(?:\d{1,2}[.)][ ])?[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){0,4}(?=[\s,]|\Z)){2,20})")


def find_prose(text: str, start: int, end: int, word: str) -> Iterator[Span]:
    """Find the value that a sentence gives to the secret named by `word` at `start`."""
    if not _is_word(text, start, end, word):
        return
    is_password = PROSE_WORDS[word]
    label = "password" if is_password else "secret"
    if not is_password and "codes" in word:
        yield from _codes(text, end)
    for pattern in (_DIRECT, _LINKED):
        found = pattern.match(text, end)
        span = _value_span(text, found, label) if found else None
        if span is not None and found is not None:
            value = text[span.start : span.end]
            linked = pattern is _LINKED or _has_copula(text, end, found)
            if _is_value(value, quoted=bool(found["open"]), linked=linked, is_password=is_password):
                yield span
                return
    if is_password:
        found = _USER_PASSWORD.match(text, end)
        if found and "//" not in found.group() and is_password_like(found["v"].rstrip(_ENDING)):
            yield Span(found.start("v"), found.start("v") + len(found["v"].rstrip(_ENDING)), label)
        yield from _backward(text, start, label)


def _is_word(text: str, start: int, end: int, word: str) -> bool:
    if not word[0].isascii() or not word[-1].isascii() and ord(word[-1]) > 0x2000:
        return True
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() or before == "_" or before in ("-", "/", ".", "$", "<", "{") or after in ("_", "(", "/"):
        return False
    return not after.isalpha() or not after.isascii() or text[end : end + 2] in ("s ", "s:", "e ", "a ", "n ", "m ", "u ", "t ", "i ")


def _has_copula(text: str, end: int, found: re.Match[str]) -> bool:
    between = text[end : found.start("v")]
    return any(not c.isspace() and c not in _OPENING for c in between)


def _value_span(text: str, found: re.Match[str], label: str) -> Span | None:
    first, value = found.start("v"), found["v"]
    if found["open"]:
        closing = re.search(r"[\"'`*)>]", value)
        value = value[: closing.start()] if closing else value
    while value and value[-1] in _ENDING:
        value = value[:-1]
    if len(value) < 4:
        return None
    return Span(first, first + len(value), label)


def _is_value(value: str, *, quoted: bool, linked: bool, is_password: bool) -> bool:
    if is_placeholder(value) or is_sentence(value) or value.startswith(("$", "--", "(", "{", "=", "/", "[")):
        return False
    if not is_password:
        return len(value) >= 12 and is_password_like(value) and _many_digits(value) or (linked and quoted and is_shaped(value, 8))
    if not is_password_like(value):
        return quoted and linked and value.isalpha() and len(value) >= 6 and not value.islower() and not value.istitle() and not value.isupper()
    if linked or quoted:
        return True
    return len(value) >= 8


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
