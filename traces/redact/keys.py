"""Key names: which names say that their value is a secret, and how strongly."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

MAX_NAME = 128


class Key(NamedTuple):
    """What a name says: the class of its value; `strong` names need less proof from the value."""

    label: str
    strong: bool


_PASSWORD = frozenset(
    "password passwd passphrase passcode passwords pwd pass passw psw pswd pw passwort kennwort "
    "contrasena senha mdp motdepasse wachtwoord haslo parola sifre heslo losenord jelszo salasana "
    "adgangskode kodeord passord psk sandi parole".split()
)
_STRONG = {
    "secret": "secret",
    "secrets": "secret",
    "apikey": "api_key",
    "apikeys": "api_key",
    "mnemonic": "secret",
    "authorization": "authorization",
}
_WEAK = {
    "token": "token",
    "jwt": "token",
    "bearer": "token",
    "pat": "token",
    "auth": "authorization",
    "credential": "credential",
    "credentials": "credential",
    "credentialdata": "credential",
    "creds": "credential",
    "cred": "credential",
    "cookie": "cookie",
    "cookies": "cookie",
    "sid": "session",
    "sessionid": "session",
    "jsessionid": "session",
    "phpsessid": "session",
    "csrf": "token",
    "xsrf": "token",
    "signature": "signature",
    "sig": "signature",
    "totp": "otp_seed",
    "community": "secret",
}
# Names written in one word: `dbpassword`, `mysecretkey`.
_ENDINGS = (
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("passcode", "password"),
    ("passwort", "password"),
    ("kennwort", "password"),
    ("userpwd", "password"),
    ("dbpwd", "password"),
    ("mysqlpwd", "password"),
    ("requirepass", "password"),
    ("storepass", "password"),
    ("keypass", "password"),
    ("sshpass", "password"),
    ("dbpass", "password"),
    ("userpass", "password"),
    ("smtppass", "password"),
    ("ftppass", "password"),
    ("adminpass", "password"),
    ("rootpass", "password"),
    ("becomepass", "password"),
    ("masterauth", "password"),
    ("bindpw", "password"),
    ("rootpw", "password"),
    ("adminpw", "password"),
    ("clientsecret", "secret"),
    ("secretkey", "secret"),
    ("secretaccesskey", "secret"),
    ("apisecret", "secret"),
    ("privatekey", "private_key"),
    ("presharedkey", "secret"),
    ("accesskey", "api_key"),
    ("apikey", "api_key"),
    ("accountkey", "api_key"),
    ("signingkey", "secret"),
    ("encryptionkey", "secret"),
    ("masterkey", "secret"),
    ("sharedkey", "secret"),
)
_WEAK_ENDINGS = ("accesstoken", "authtoken", "apitoken", "refreshtoken", "idtoken", "sessiontoken")
# `<word> key`: the words that make a key a secret one.
_SECRET_KEY_WORDS = {
    **dict.fromkeys(
        "api access account service storage subscription functions host license deploy app "
        "openai anthropic stripe sendgrid mailgun twilio datadog azure gemini google groq mistral "
        "cohere algolia github gitlab huggingface hf aws gcp maps dd".split(),
        "api_key",
    ),
    **dict.fromkeys(
        "secret signing encryption master shared hmac aes jwt webhook session cookie auth logged "
        "nonce unseal recovery root preshared wep wpa fernet cipher crypt decryption crypto "
        "totp otp mfa tls ssl".split(),
        "secret",
    ),
    **dict.fromkeys("private rsa ssh pgp gpg client wireguard".split(), "private_key"),
}
_WEAK_KEY_WORDS = frozenset(
    "service storage host license app google aws gcp maps azure github gitlab session cookie auth "
    "root recovery nonce ssh rsa client tls ssl functions crypto github stripe".split()
)
_SALT_WORDS = frozenset("auth logged nonce secure password in app session cookie".split())
_SEED_WORDS = frozenset("totp otp mfa hd wallet master tfa factor auth".split())
_OTP_WORDS = frozenset("totp otp mfa 2fa tfa hotp".split())

# Names that end with one of these describe the secret and do not hold it.
_DESCRIBES = frozenset(
    "type count counts limit limits name names path paths file files filename dir folder url uri "
    "urls link endpoint id ids uuid env ref refs reference policy policies field fields column "
    "hashed hasher hashers changed updated created at on reset required enabled disabled length len "
    "size expiry expires expired expiration expire ttl usage budget rate alg algorithm algorithms "
    "method methods model user users username email backend backends class classes form view "
    "validation validator validators consent age secure httponly samesite index position rotation "
    "rotated provider providers mode version versions header headers scheme schemes status state "
    "date time timestamp key keys label placeholder hint help error errors message messages title "
    "description strength min max regex pattern format prompt input widget element group groups "
    "manager store service handler provider middleware scope scopes audience issuer source stdin "
    "accessor duration renewable policies arn group visible visibility window price cost "
    "prefix suffix kind exists valid match matches attempts retries test tests page screen button "
    "used remaining total budget per encoder encoding counter".split()
)
_HOLDS = frozenset(
    "value val string str prod dev staging production test live b64 base64 pem current old new text "
    "plain plaintext plain_text data raw literal content encrypted1 confirm confirmation again "
    "repeat default binary b computed".split()
)
_ASKS = frozenset(
    "is has have had show hide reset forgot forgotten change no min use uses needs require requires "
    "allow allows enable disable can should must update verify validate check get set "
    "generate create with without num count".split()
)
_PUBLIC_TOKENS = frozenset(
    "page next previous prev continuation continue sync cancel eos bos pad unk sep cls mask start "
    "stop special first last per max min fencing lease claim cancellation input output total "
    "completion prompt cached reasoning end begin draft sub word lex lexer parse parser current "
    "public publishable anon paging cursor resume skip watermark marker invalidation each any every".split()
)
_PUBLIC_KEYS = frozenset(
    "public primary foreign sort cache partition idempotency routing object row column composite "
    "unique natural range hash group dedupe dedup foreign translation i18n message config setting "
    "pub verify verification".split()
)
_SAFE_WHOLE = frozenset(
    "tokens max_tokens maxtokens session_id auth_method author authors authority credentials_include "
    "aws_access_key_id access_key_id accesskeyid kms_key_id compass bypass pass_through auth_user_model "
    "signature_version auth_type pass_rate".split()
)
# In other alphabets a name is matched by the word in it.
_FOREIGN = (
    "contraseña пароль парол hasło şifre lösenord heslo jelszó κωδικός 密码 密碼 口令 密钥 密鑰 "
    "金鑰 令牌 权杖 權杖 パスワード 暗証番号 シークレット 秘密鍵 アクセスキー 비밀번호 암호 "
    "كلمة_المرور كلمة_السر पासवर्ड รหัสผ่าน סיסמה mật_khẩu"
).split()

_SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=16_384)
def classify_key(name: str) -> Key | None:
    """Say what kind of secret a name announces, or None if its value is harmless."""
    if not name or len(name) > MAX_NAME:
        return None
    if not name.isascii():
        lowered = name.lower().replace(" ", "_")
        return Key("password", True) if lowered.endswith(tuple(_FOREIGN)) else None
    whole = name.lower().strip("_-.$@ ").replace("-", "_").replace(" ", "_")
    if whole in _SAFE_WHOLE or whole.endswith("tokens"):
        return None
    segments = [part.lower() for part in _SEGMENT.findall(name)]
    while len(segments) > 1 and (segments[-1].isdigit() or segments[-1] in _HOLDS):
        segments.pop()
    if not segments or (len(segments) > 1 and segments[0] in _ASKS and segments[0] != "confirm"):
        return None
    return _by_last_segments(segments)


def _by_last_segments(segments: list[str]) -> Key | None:
    last = segments[-1]
    before = segments[-2] if len(segments) > 1 else ""
    if last in ("key", "keys"):
        return _kind_of_key(before, segments)
    if last in ("hash", "digest", "crypt", "salt", "base", "seed", "secret", "id", "pin"):
        return _by_pair(before, last, segments)
    if last in _PASSWORD:
        return Key("password", True)
    if last in _DESCRIBES or (last == "token" and before in _PUBLIC_TOKENS):
        return None
    if last in _STRONG:
        return Key(_STRONG[last], True)
    if last in _WEAK:
        return Key(_WEAK[last], False)
    return _by_ending(last, "".join(segments[-3:]))


def _by_pair(before: str, last: str, segments: list[str]) -> Key | None:
    """Last words that say something only together with the word before them."""
    if last == "pin":
        return Key("pin", True)
    if last in ("seed", "secret") and (before in _SEED_WORDS or "2fa" in "".join(segments[:-1])):
        return Key("otp_seed", True)
    if last == "secret":
        return Key("secret", True)
    if last == "salt" and before in _SALT_WORDS:
        return Key("secret", False)
    if last in ("hash", "digest", "crypt") and before in _PASSWORD:
        return Key("password_hash", False)
    if last == "base" and segments[-3:] == ["secret", "key", "base"]:
        return Key("secret", True)
    if last == "id" and before == "session" and segments[0] in ("php", "asp", "j"):
        return Key("session", False)
    return None


def _kind_of_key(before: str, segments: list[str]) -> Key | None:
    if before in _PUBLIC_KEYS:
        return None
    if before in _SECRET_KEY_WORDS:
        return Key(_SECRET_KEY_WORDS[before], before not in _WEAK_KEY_WORDS)
    if before in _PASSWORD or "secret" in segments[:-1]:
        return Key("secret", False)
    return None


def _by_ending(last: str, joined: str) -> Key | None:
    for ending, label in _ENDINGS:
        if last.endswith(ending):
            return Key(label, True)
    if joined.endswith(("secretaccesskey",)):
        return Key("secret", True)
    if last.endswith(_WEAK_ENDINGS):
        return Key("token", False)
    return None


# A mapping or list under one of these names is secret as a whole, whatever its own names say.
_WHOLE = frozenset(
    "secrets credentials creds cookies passwords api_keys apikeys stringdata string_data "
    "secret_data secretdata".split()
)
_HARMLESS_INSIDE = frozenset(
    "user username type region host hostname port name namespace version id scope scopes role "
    "domain path expires expires_in expiration expiry lang language locale theme issuer method "
    "file external key provider arn kind enabled service account environment env source "
    "secure httponly samesite description comment note title status count created_at updated_at created updated "
    "namespace labels annotations metadata apiversion".split()
)


def is_secret_container(name: str) -> bool:
    """Say whether everything below this name is secret."""
    return name.lower().replace("-", "_").lstrip("_") in _WHOLE


def is_harmless_inside(name: str) -> bool:
    """Say whether a name keeps its value although it stands in a secret container."""
    return name.lower() in _HARMLESS_INSIDE


_PERSONAL = {
    **dict.fromkeys(
        "phone phonenumber mobile mobilephone tel telephone cell cellphone fax whatsapp".split(),
        "phone",
    ),
    **dict.fromkeys("ssn socialsecuritynumber".split(), "ssn"),
    **dict.fromkeys("cardnumber creditcard creditcardnumber ccnumber pan".split(), "card"),
    **dict.fromkeys("cvv cvc cvv2 securitycode".split(), "pin"),
    **dict.fromkeys("otp otpcode verificationcode onetimecode mfacode".split(), "otp_code"),
}


def classify_personal(name: str) -> str | None:
    """Return the class of personal number a name announces: phone, ssn, card or a code."""
    return _PERSONAL.get(re.sub(r"[_\-. ]", "", name.lower()))
