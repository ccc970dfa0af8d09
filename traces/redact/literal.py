"""Literals: is this text a secret's value, or a placeholder, a name, code or a sentence?"""

from __future__ import annotations

import itertools
import re

from traces.redact.keys import Key, classify_key

_PLACEHOLDER = re.compile(
    r"""(?ix) ^(?:
      \$[\w{(].* | %\(?[A-Za-z_]\w*\)?[%s]?$ | %\w+\(.*\)%$ | @@\w+@@$ | %[sdvq]$ | \#?\{{1,2}[\s\w.$'()|-]{0,100}\}{0,2}$ | \{\{.* | \{%.* | <[^<>]{1,80}>?$ | <<.*
      | [*•·x█▪●\u2022.…_?-]{3,} [\w]{0,4}$ | \[ (?: redacted | withheld | masked | hidden | filtered | removed | \.\.\. ) .*
      | \[?\(?(?: redacted | masked | hidden | filtered | removed | sensitive | secret ) [\])]?$
      | \((?: sensitive | known\ after | not\ set | none | empty | hidden | redacted | unset ) .*
      | (?: https? | file ):// [^\s@]* $
      | (?: env | vault | secret | secrets | ssm | op | ref | file | sops | awssm | gcpsm | keyring | azurekeyvault ) : .*
      | (?: ref\+ | arn:aws | projects/ | secretsmanager | kms: | @microsoft | !vault | !secret | !ref | !sub | !env | \#\{ | ENC\[ ) .*
      | (?: var | local | data | module | secrets | process\.env | os\.environ | env | vars | inputs | github | steps | self | this | config | settings | params | options | opts | args | req | request | body ) [.\[] [\w.\[\]'":-]* [,;]? $
      | your[-_\ ].* | .*(?:key|token|password|passwd|secret|value|goes|id)[-_ ]here$ | example.* | .*EXAMPLE(?:KEY)?$ | placeholder.* | change[-_ ]?(?:me|it|this)[!.]?$ | (?:insert|enter|replace|put|add)[-_ ].*
      | todo.* | fixme.* | dummy.* | sample.* | (?: foo | bar | baz | n/?a | nil | null | none | undefined | nan )$
      | data:[a-z]+/[a-z]+.*
    )""",
    re.DOTALL,
)
# A prefix that is real and a rest that is masked: `sk-xxxxxxxx`, `ghp_****`, `sk-...4f2a`.
_MASKED = re.compile(
    r"^[\w-]{0,16}?(?:[xX]{5,}|\*{3,}|\.{3}|\u2026|\u2022{3,}|<[^>]{1,40}>)[\w-]{0,6}$"
)
_STOP_WORDS = frozenset(
    "true false yes no on off none null nil undefined str string strings int integer bool boolean bytes "
    "byte number text any object array list dict map char varchar float type optional required nullable "
    "hidden include omit same-origin bearer basic digest enabled disabled default auto manual valid "
    "invalid expired missing present set unset unchanged changed unknown empty ok error ok. strong weak "
    "plain encrypted hashed identifier literal public private internal external rotate rotated "
    "password passwd passphrase passcode pwd pass secret secrets token tokens key keys apikey auth "
    "credential credentials cookie user username email login admin-password passwort kennwort contraseña "
    "senha motdepasse wachtwoord hasło пароль 密码 パスワード 비밀번호 prompt input value file path env vault field "
    "self this new old current confirm test redacted masked oauth oauth2 saml ldap jwt sso none. opaque "
    "kubernetes never always session request response header query body is was and or not the a an for to "
    "in at by of from with without if else return raise import let const var function class def async await "
    "readonly static final pin code sha256 sha512 sha1 md5 hs256 rs256 es256 bcrypt argon2 argon2id pbkdf2 "
    "scrypt base64 utf-8 utf8 x509 ed25519 aes-256 aes-256-gcm aes256 sha-256 http2 oauth1 openid 2fa mfa totp "
    "secretstr 1password lastpass keepass keepassxc bitwarden".split()
)
# A value made of these words only, joined by blanks, dots, dashes or in camel case, is a stand-in.
_STAND_IN = frozenset(
    "your my the a an some any api key keys secret secrets token tokens password passwd pass pwd here "
    "insert enter replace change me this with add put goes value values placeholder example sample "
    "dummy fake todo fixme db user access client private id openai github real actual new old "
    "own in production strong string random of redacted hidden masked removed none not set null empty "
    "default to be long generated optional required from env vault credentials credential auth bearer "
    "is and or name username wrong bad invalid missing field input forgot confirm repeat reset hash "
    "hashed text form type label bearer basic current session refresh csrf xsrf cookie header login "
    "passwort vergessen mot de passe oublié contraseña olvidada database root admin_password".split()
)
_SENTENCE_WORDS = frozenset(
    "is are was were be been must should can cannot may will the this that your at least than too not "
    "has have had no please enter required invalid incorrect wrong for of and or with characters field "
    "does do did to in on from we you it its be by der die das ist und nicht muss le la les est doit "
    "pas el los es debe no een niet moet".split()
)
_CODE_CALL = re.compile(r"[A-Za-z_$@][\w.$:]{0,80}\(")
_SUBSCRIPT = re.compile(r"[A-Za-z_][\w.]*\[[A-Za-z_:'\"]")
_PIN = re.compile(r"\d{3,12}")
_ATTRIBUTE = re.compile(
    r"(?:[a-z_]+(?:[A-Z][a-z]+)*|[A-Z][a-z]+(?:[A-Z][a-z]+)*|[A-Z_]+)"
    r"(?:(?:\??\.|::|->)(?:[a-z_]+(?:[A-Z][a-z]+)*|[A-Z][a-z]+(?:[A-Z][a-z]+)*|[A-Z_]+)){1,8}[.;,]?"
)
_BARE_NAME = re.compile(
    r"(?:[a-z]+|[A-Z][a-z]+|[A-Z_]+|[a-z_]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+)[.:!?;]?"
)
_NAME_WITH_DIGIT = re.compile(r"(?:[a-z]+_)+[a-z]*\d?|[a-z]+\d?(?:_[a-z]+\d?)+")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/][\w.@ $%-]{0,80}){1,12}")
_FILE = re.compile(
    r"[\w./\\-]{1,120}\.(?:pem|key|crt|cer|txt|json|ya?ml|env|py|js|tsx?|md|toml|ini|cfg|conf|html?|"
    r"java|go|rs|rb|php|sh|sql|p12|pfx|jks|csv|xml|log|lock)"
)
_DATE = re.compile(
    r"(?:19|20)\d\d-\d\d(?:-\d\d)?(?:[T ].*)?|\d{1,2}:\d\d(?::\d\d)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
_AMOUNT = re.compile(
    r"[<>~]?[\d.,]+(?:%|[a-zA-Z]{1,3})?|\d+(?:\.\d+)+(?:[-+]\w+)?|v\d[\w.-]*|\d+/\d+"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zçéñßäöü]+|\d+|[^\W_]")
_HYPHENED = re.compile(r"[A-Za-z]+(?:[-/_][A-Za-z]+)+[.,;:]?")
_TECH_WORD = re.compile(
    r"(?i)(?:sha-?\d+|md5|[hrep]s\d{3}|aes-?\d*(?:-\w+)*|base\d\d|utf-?\d+|oauth\d?|x509|ed25519|http\d?|rfc-?\d+|"
    r"[a-z]{1,3}\d|python\d|java\d+|log4j|k8s|i18n|\d+(?:st|nd|rd|th|x|ms|s|m|h|d|k|kb|mb|gb|px|em|bit|bits|bytes?|chars?|days?)"
    r"|\d+-(?:bit|byte|char|digit|day|hour|minute|factor|character|step|letter)s?)"
)


def is_placeholder(value: str) -> bool:
    """Say whether a value only stands for a secret: a variable, a mask, `YOUR_KEY_HERE`."""
    stripped = value.strip()
    if len(stripped) < 3 or _PLACEHOLDER.match(stripped):
        return True
    if stripped.lower() in _STOP_WORDS:
        return True
    if _MASKED.search(stripped) or (len(set(stripped)) < 3 and not stripped.isdigit()):
        return True
    words = _WORDS.findall(stripped)
    return len(stripped) <= 60 and bool(words) and all(word.lower() in _STAND_IN for word in words)


def is_sentence(value: str) -> bool:
    """Say whether a value with blanks reads as a sentence or a label rather than a passphrase."""
    words = value.split()
    if len(words) < 2:
        return False
    lowered = [word.strip(".,:;!?()\"'").lower() for word in words]
    if any(word in _SENTENCE_WORDS for word in lowered):
        return True
    if len(words) > 24:
        return True
    if len(words) == 2 and (value[:1].isupper() and value.replace(" ", "").isalpha()):
        return lowered[0] in _STAND_IN or lowered[1] in _STAND_IN or lowered[1] in _STOP_WORDS
    return (
        value.rstrip().endswith((".", "?", "...")) and value.replace(" ", "").rstrip(".?").isalpha()
    )


def is_pointer(value: str) -> bool:
    """Say whether a value names a place (path, file) where something is kept."""
    if _FILE.fullmatch(value):
        return True
    if not _PATH.fullmatch(value):
        return False
    return not (len(value) >= 24 and "." not in value and _is_mixed(value))


def _is_mixed(value: str) -> bool:
    return (
        any(c.isdigit() for c in value)
        and any(c.islower() for c in value)
        and any(c.isupper() for c in value)
    )


def is_secret_quoted(value: str, key: Key) -> bool:
    """Say whether a quoted or structural value under `key` is a secret."""
    if is_placeholder(value) or is_pointer(value) or is_sentence(value):
        return False
    if key.label == "pin":
        return _PIN.fullmatch(value) is not None
    if value.isdigit():
        return key.strong and len(value) >= 4
    if _DATE.fullmatch(value) or value.startswith(("+ ", ", ", ") ", "./", "../")):
        return False
    if not any(c.isalnum() for c in value):
        return key.label == "password" and len(value) >= 8 and len(set(value)) >= 5
    if _is_code(value):
        return False
    if key.strong:
        return len(value) >= 4 and not _names_a_secret(value)
    return is_shaped(value, 8) and not _NAME_WITH_DIGIT.fullmatch(value)


def _is_code(value: str) -> bool:
    return bool(
        (_CODE_CALL.match(value) and value.rstrip(";,").endswith(")"))
        or "${" in value
        or "{{" in value
    )


def _names_a_secret(value: str) -> bool:
    """`DB_PASSWORD` or `db-password` as a value is the name of a secret, not a secret."""
    if not re.fullmatch(
        r"[A-Za-z]+(?:[_-][A-Za-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+", value
    ):
        return False
    if _UPPER_NAME.fullmatch(value):
        return True
    last = _WORDS.findall(value)[-1]
    return classify_key(value) is not None and classify_key(last) is not None


_UPPER_NAME = re.compile(r"[A-Z]+(?:_[A-Z]+)+")


def is_secret_bare(value: str, key: Key, *, config: bool) -> bool:
    """Say whether an unquoted value is a secret; `config` where the line is a plain setting."""
    if is_placeholder(value) or is_pointer(value.rstrip(",;")) or _DATE.fullmatch(value):
        return False
    if key.label == "pin":
        return _PIN.fullmatch(value) is not None
    if value.isdigit():
        return config and key.strong and 4 <= len(value) <= 64
    if _is_expression(value, config=config) or not any(c.isalnum() for c in value):
        return False
    if _BARE_NAME.fullmatch(value) or _HYPHENED.fullmatch(value):
        return config and key.strong and _is_config_word(value)
    return len(value) >= 4 if key.strong else is_shaped(value, 8)


def _is_expression(value: str, *, config: bool) -> bool:
    """Code, an amount or a name with a digit; a plain setting may begin with more signs."""
    if _AMOUNT.fullmatch(value) or _TECH_WORD.fullmatch(value) or _SUBSCRIPT.match(value):
        return True
    if _CODE_CALL.match(value) or value.endswith(("[", "{", "(")) or value[0] in "([{<":
        return True
    if not config and value[0] in "=>|&?!/*,":
        return True
    if _ATTRIBUTE.fullmatch(value) or "${" in value or "$(" in value or value[0] == "=":
        return True
    return _NAME_WITH_DIGIT.fullmatch(value) is not None and _has_key_word(value)


def _is_config_word(value: str) -> bool:
    return (
        len(value) >= 5
        and not has_noun(value)
        and not _UPPER_NAME.fullmatch(value)
        and not value.endswith((":", ";"))
    )


_NOUNS = frozenset(
    "password passwd pwd secret token key user username auth value field string input hash form type name "
    "credential credentials cookie header config settings self this".split()
)


def has_noun(value: str) -> bool:
    """Say whether a value contains a word that names secrets, as `my-secret-2` does."""
    return any(word.lower() in _NOUNS for word in _WORDS.findall(value))


def _has_key_word(value: str) -> bool:
    return any(
        word.lower() in _STAND_IN or word.lower() in _STOP_WORDS for word in _WORDS.findall(value)
    )


def is_shaped(value: str, least: int) -> bool:
    """Say whether a value looks made by a machine or chosen as a password, whatever its name."""
    if len(value) < least or (_UUID.search(value) and len(value) > 60):
        return False
    letters = any(c.isalpha() for c in value)
    digits = any(c.isdigit() for c in value)
    if letters and digits:
        return not (
            _TECH_WORD.fullmatch(value) or _AMOUNT.fullmatch(value) or _DATE.fullmatch(value)
        )
    return letters and (
        (len(value) >= 20 and not _HYPHENED.fullmatch(value) and _changes_case(value))
        or (len(value) >= 10 and any(c in "!@#$%^&*+=~" for c in value))
    )


def _changes_case(value: str) -> bool:
    ups = sum(c.isupper() for c in value)
    return ups >= 3 and not _BARE_NAME.fullmatch(value)


def is_password_like(value: str) -> bool:
    """Say whether a word in running text can only be a password (letters with digits or signs)."""
    if not 6 <= len(value) <= 128 or is_placeholder(value) or is_pointer(value):
        return False
    if (
        "://" in value
        or _DATE.fullmatch(value)
        or _AMOUNT.fullmatch(value)
        or _UUID.fullmatch(value)
    ):
        return False
    if _CODE_CALL.search(value) or _ATTRIBUTE.fullmatch(value) or "==" in value or "()" in value:
        return False
    if (
        _TECH_WORD.fullmatch(value)
        or _NAME_WITH_DIGIT.fullmatch(value)
        or _HYPHENED.fullmatch(value)
    ):
        return False
    parts = re.split(r"[-/.]", value)
    if any(_case_switches(part) >= 4 for part in parts):
        return True
    if "/" in value and all(not p or p.isalpha() or p.isdigit() for p in parts):
        return False
    if len(parts) > 1 and all(not p or p.isalpha() or _is_tech(p) for p in parts):
        return False
    letters = any(c.isalpha() for c in value)
    if letters and any(c.isdigit() for c in value):
        return True
    return letters and any(c in "!@#$%^&*+~" for c in value[:-1])


def _is_tech(part: str) -> bool:
    # `256x` is a size, `8812x` is not.
    return (len(part) <= 4 or not part[0].isdigit()) and _TECH_WORD.fullmatch(part) is not None


def _case_switches(word: str) -> int:
    return sum(
        a.isupper() != b.isupper()
        for a, b in itertools.pairwise(word)
        if a.isalpha() and b.isalpha()
    )
