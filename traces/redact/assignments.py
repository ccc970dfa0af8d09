"""Assignments in text: a sensitive name, an operator and a value, in any notation.

JSON at any depth of escaping, YAML, TOML, ini, properties, HCL, env files, code, XML, tables,
long command-line options, name/value pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traces.redact.keys import Key, classify_key
from traces.redact.literal import (
    has_noun,
    is_password_like,
    is_placeholder,
    is_secret_bare,
    is_secret_quoted,
    is_shaped,
)
from traces.redact.marker import Span

# How far behind the end of the name its value can begin; the stream waits this long.
REACH = 96
_MAX_QUOTED = 8_192

_NAME_LEFT = re.compile(r"[A-Za-z0-9_.\-$@]{0,80}\Z")
_NAME_RIGHT = re.compile(r"[A-Za-z0-9_\-]{0,64}(?:\[\d{1,3}\])?")
_FOREIGN_RIGHT = re.compile(r"(?:[ ]?\([^()\n]{1,20}\))?")

_QUOTE = r"""(?:\\{0,15}["'`]|&(?:quot|apos|\#34|\#39|\#x27|\#x22);)"""
_OPERATOR = re.compile(
    rf"""(?x)
    (?P<closing>{_QUOTE}?) (?:\]|\*{{1,2}}|_{{2}})? [ \t]{{0,40}}
    (?P<op> ===? | !==? | => | := | \?\?= | \|\|= | \?= | \+= | = | : (?!:|//) | \uff1a | \uff1d | -> | %3A | %3D )
    (?:\*{{1,2}}|_{{2}})? [ \t]{{0,20}}
    (?P<annotation> (?: [A-Za-z_&?][\w.&\[\]<>|?' ]{{0,40}} [ ]? =(?!=) [ ]? (?=["'bfru]) )? )
    (?P<wrapper> (?: (?:new[ ])? (?:SecretStr|Secret|SecureString|String|Some|bytes|str|sensitive|b64decode|base64decode|
         Buffer\.from|String::from|Bytes::from|\[\]byte|std::string|quote|to_string|HCL::) \( [ ]? )? )
    (?P<prefix> (?: !!(?:str|binary)[ ] | [bBrRuUfFL@]{{1,2}}(?=["']) )? )
    (?P<opening> "{{3}} | '{{3}} | {_QUOTE} | \u201c | \u300c | \u00ab )?
    """
)
_OPERATOR_NEXT_LINE = re.compile(
    r"""[ \t]{0,8}:[ \t]*(?:[|>][+-]?\d?)[ \t]*\r?\n(?P<indent>[ \t]+)(?P<v>[^\r\n]{4,})"""
)
_BARE = re.compile(r"""[^\s,"'`<>)}\]\\&|;\uff0c\u3002\uff1b\u300d]{1,4096}""")
_BARE_LINE = re.compile(r"""[^\s"'`<>\\\uff0c\u3002\uff1b]{1,4096}""")
_TAG = re.compile(
    r"""(?: (?P<q>["'])? [^<>\n]{0,80}? (?<![=/-]) > \s{0,4} | &gt; ) (?:<!\[CDATA\[)? (?P<v>[^<>\s&](?:[^<>\n]{0,510}[^<>\s\]])?) (?:\]\]>)? \s{0,4} (?: </ | &lt;/ | <value> )""",
    re.VERBOSE,
)
_TAG_VALUE = re.compile(
    r"""\s{0,2}["']?\s*/?>?\s*</?(?:name|key|string)>\s*<(?:value|string)>(?P<v>[^<>\n]{4,512})</"""
)
_COMMA = re.compile(rf"""(?P<closing>{_QUOTE})\s{{0,2}},\s{{0,4}}(?P<opening>{_QUOTE})""")
_ATTRIBUTE_VALUE = re.compile(
    rf"""(?:{_QUOTE})?\s{{0,4}}(?:,\s{{0,24}}|\s(?:[\w:-]{{1,20}}=["'][^"'<>\n]{{0,60}}["']\s){{0,3}}|\s*\n\s{{0,24}}|\s*-\s)?"""
    rf"""(?:(?:{_QUOTE})?type(?:{_QUOTE})?\s?[:=]\s?(?:{_QUOTE})?\w{{1,20}}(?:{_QUOTE})?,?\s{{0,24}})?"""
    rf"""(?P<k>{_QUOTE})?(?:value|Value|VALUE|content|secret_value|SecretString)(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?P<opening>{_QUOTE})?"""
)
# Terraform: `variable "db_password" { … default = "…" }`.
_DEFAULT = re.compile(
    r"""["']?\s{0,2}\{[^{}"]{0,200}?(?:"[^"{}]{0,120}"[^{}"]{0,100}?)?\b(?:default|value)\s{0,12}=\s{0,4}(?P<k>)(?P<opening>["'])"""
)
_DEFAULT_OPEN = re.compile(r"""["']?\s{0,2}\{[^{}]{0,400}\Z""")
_COLUMN = re.compile(
    r"""(?P<gap>[ ]{2,60}|\t{1,4}|[ ]{0,40}[|\u2502\u2503][ ]{1,40}(?:[\w-]{1,20}[ ]{0,40}[|\u2502\u2503][ ]{1,40})??)(?P<v>[^\s|\u2502\u2503"'`<>]{4,512})(?=\s|[|\u2502\u2503]|\Z)"""
)
_SPACE_VALUE = re.compile(r"""[ \t]{1,4}(?P<opening>["'])?(?P<v>[^\s"'`<>]{3,512})""")
_DIRECTIVE = frozenset("requirepass masterauth bindpw rootpw password passphrase pass psk".split())
_LINE_START = re.compile(
    r"""(?:^|[\n\r]|\\n|\\r|["'`])[ \t]{0,40}(?:[-+*>#$%][ \t]{0,3})?(?:(?:export|set|setx|env|ENV|ARG|declare|local|readonly|SET|\$env:|-e|--env|-D|-v)[ \t]{1,3}(?:-x[ ])?)?["'`]?\Z"""
)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey|Digest|Bot|bearer|basic|token)[ ]{1,2}")
_SETTING_WORD = re.compile(
    r"(?:^|[\n;])[ \t]*(?:ENV|ARG|setx|setenv|SETX|SetEnv|fastcgi_param|env)[ \t]+\Z|\b(?:config(?:ure)?|secrets?)[ ]+(?:--?\w+[ ]+)?(?:set|put|add)[ ]+(?:--?[\w=-]+[ ]+){0,3}[\w./:]{0,60}\Z|git[ ]config[ ](?:--\w+[ ])?\Z"
)
_BRACED = re.compile(r"\{(?P<v>[^{}\s\"']{3,128})\}(?=;|\Z)")
_CRUMBS = re.compile(r"""["'\\]{0,4}\]?[ ]{0,4}[:=][ ]{0,4}["'\\]{0,4}[\w.-]{1,64}=""")
_UNITS_AFTER = re.compile(r"[ ](?:bytes?|tokens?|characters?|chars?|days?|hours?|min|ms|s)\b")


def name_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the whole identifier around a key word found from `start` to `end`."""
    if not text[start:end].isascii():
        right = _FOREIGN_RIGHT.match(text, end)
        return start, right.end() if right else end
    left = _NAME_LEFT.search(text, max(0, start - 80), start)
    first = left.start() if left else start
    if first > 0 and text[first - 1] == "\\" and text[first] in "nrt" and first < start:
        first += 1
    while first < start and text[first] in ".@":
        first += 1
    right = _NAME_RIGHT.match(text, end)
    last = right.end() if right else end
    while last > end and text[last - 1] == "-" and last - end > 0:
        last -= 1
    return first, last


def find_assignment(text: str, start: int, end: int) -> Iterator[Span]:
    """Find the value given to the name from `start` to `end`, if the name is sensitive."""
    name = text[start:end]
    key = classify_key(name.split(".")[-1].split("[")[0]) or classify_key(name)
    if key is None or (key.label == "cookie" and _CRUMBS.match(text, end)):
        return
    option = name.startswith("-")
    for find in (_by_operator, _by_block, _by_tag, _by_comma, _by_value_label, _by_column):
        span = find(text, start, end, key)
        if span is not None:
            yield span
            return
    span = _by_blank(text, start, end, key, option=option)
    if span is not None:
        yield span
        return
    yield from _by_table(text, start, end, key)


def _by_operator(text: str, start: int, end: int, key: Key) -> Span | None:
    found = _OPERATOR.match(text, end)
    if found is None:
        return None
    if found["op"] in ("==", "===", "!=", "!==", "->") and not found["opening"]:
        return None
    if found["opening"]:
        return _quoted(text, found.end(), found["opening"], key)
    if found["wrapper"] or found["annotation"]:
        return None
    braced = _BRACED.match(text, found.end())
    if braced and text[start - 1 : start] == ";":
        return Span(braced.start("v"), braced.end("v"), key.label)
    return _bare(text, start, found.end(), found["op"], key)


def _quoted(text: str, first: int, quote: str, key: Key) -> Span | None:
    last = closing_quote(text, first, quote)
    unclosed = last < 0
    if unclosed:
        line_end = text.find("\n", first, first + _MAX_QUOTED)
        last = line_end if line_end >= 0 else min(len(text), first + _MAX_QUOTED)
        blank = re.compile(r"\s").search(text, first, last)
        last = blank.start() if blank else last
    scheme = _SCHEME.match(text, first, last)
    if scheme and last - scheme.end() >= 4:
        first = scheme.end()
    value = text[first:last]
    if unclosed and not is_shaped(value, 6):
        return None
    if value and is_secret_quoted(value, key):
        return Span(first, last, key.label)
    return None


def is_open_value(text: str, start: int, end: int) -> bool:
    """Say whether a quoted value given to the name around `start` has not ended yet."""
    first, last = name_around(text, start, end)
    if classify_key(text[first:last]) is None:
        return False
    found = _OPERATOR.match(text, last)
    if found is None or not found["opening"]:
        return _DEFAULT_OPEN.match(text, last) is not None
    return (
        "\n" not in text[found.end() :] and closing_quote(text, found.end(), found["opening"]) < 0
    )


_CLOSERS = {"\u201c": "\u201d", "\u300c": "\u300d", "\u00ab": "\u00bb"}


def closing_quote(text: str, first: int, quote: str) -> int:
    """Return where the string opened by `quote` (with as many backslashes) ends, or -1."""
    quote = _CLOSERS.get(quote, quote)
    limit = min(len(text), first + _MAX_QUOTED)
    if quote[0] == "&" or (len(quote) == 3 and quote[0] == quote[1]):
        return text.find(quote, first, limit)
    slashes = len(quote) - 1
    at = first
    while True:
        at = text.find(quote[-1], at, limit)
        if at < 0:
            return -1
        begin = at
        while begin > first and text[begin - 1] == "\\":
            begin -= 1
        count = at - begin
        if quote == "'" and text[at + 1 : at + 2] == "'" and at > first:
            at += 2  # a doubled quote stands for one inside the string
            continue
        if count == slashes or (slashes == 0 and count % 2 == 0):
            end = begin if slashes else at
            return (
                -1
                if "\n" in text[first:end] and not slashes and end - first < 200 and quote != "`"
                else end
            )
        at += 1


def _bare(text: str, start: int, first: int, operator: str, key: Key) -> Span | None:
    before = text[max(0, start - 60) : start]
    at_line_start = _LINE_START.search(before) is not None
    in_query = before[-1:] in ("?", "&", ";")
    name = text[start : _name_end(text, start)]
    config = at_line_start and (
        (
            operator in ("=", ":=", "\uff1d")
            and (name.upper() == name or "." in name or not text[first - 1 : first].isspace())
        )
        or operator in (":", "\uff1a", "=>", "=")
    )
    scheme = _SCHEME.match(text, first)
    if scheme:
        first = scheme.end()
    found = (_BARE_LINE if at_line_start and not in_query else _BARE).match(text, first)
    if found is None:
        return None
    last = found.end()
    value = found.group().rstrip(",;") if at_line_start else found.group()
    if value.endswith((").", ").;", ")")) and "(" not in value:
        value = value.rstrip(").;")
    if not at_line_start:
        value = value.rstrip(".:") if text[last : last + 1] in ("", " ", "\n") else value
    last = first + len(value)
    if _UNITS_AFTER.match(text, last) and value.isdigit():
        return None
    whole_line = (
        text[last : last + 1] in ("", "\n", "\r", "\\", ",", ";", '"', "'", "`")
        or _COMMENT.match(text, last) is not None
    )
    rest_is_code = _CODE_AFTER.match(text, last) is not None
    if rest_is_code or not value:
        return None
    if is_secret_bare(value, key, config=config and whole_line and text[first - 1 : first] != "("):
        return Span(first, last, key.label)
    return None


_COMMENT = re.compile(r"[ \t]*(?:#|//|--|;|\r?\n|\Z|\|)")
_CODE_AFTER = re.compile(r"\(|\[[^\s\]]|[ ](?:if|else|or|and|===?|!==?|\?|\|\||&&|[+*%])[ ]|[ ]?=>")


def _name_end(text: str, start: int) -> int:
    found = re.compile(r"[\w.\-$@]{1,160}").match(text, start)
    return found.end() if found else start


def _by_block(text: str, start: int, end: int, key: Key) -> Span | None:
    del start
    found = _OPERATOR_NEXT_LINE.match(text, end)
    if found is None:
        return None
    last = found.end()
    following = re.compile(r"\r?\n" + re.escape(found["indent"]) + r"(?=\S)[^\r\n]{1,400}")
    for _ in range(400):
        line = following.match(text, last)
        if line is None:
            break
        last = line.end()
    if is_placeholder(found["v"]) or text.startswith("$ANSIBLE_VAULT", found.start("v")):
        return None
    return Span(found.start("v"), last, key.label)


def _by_tag(text: str, start: int, end: int, key: Key) -> Span | None:
    if text[end : end + 1] not in (">", '"', "'", "&", "<", " "):
        return None
    if text[start - 1 : start] not in ("<", '"', "'", ";", ">", ":"):
        return None
    for pattern in (_TAG, _TAG_VALUE):
        found = pattern.match(text, end)
        if found and is_secret_quoted(found["v"], key):
            return Span(found.start("v"), found.end("v"), key.label)
    return None


def _by_comma(text: str, start: int, end: int, key: Key) -> Span | None:
    del start
    found = _COMMA.match(text, end)
    if found is None:
        return None
    first = found.end()
    last = closing_quote(text, first, found["opening"])
    if last < 0:
        return None
    scheme = _SCHEME.match(text, first, last)
    first = scheme.end() if scheme else first
    value = text[first:last]
    if (
        classify_key(value) is not None and not any(c.isdigit() for c in value)
    ) or not is_secret_quoted(value, key):
        return None
    if scheme or is_password_like(value) or is_shaped(value, 8):
        return Span(first, last, key.label)
    return None


def _by_value_label(text: str, start: int, end: int, key: Key) -> Span | None:
    del start
    found = _ATTRIBUTE_VALUE.match(text, end) or _DEFAULT.match(text, end)
    if found is None:
        return None
    if found["opening"]:
        return _quoted(text, found.end(), found["opening"], key)
    bare = _BARE_LINE.match(text, found.end())
    if bare is None:
        return None
    value = bare.group().rstrip(",;}")
    if is_secret_bare(value, key, config=True):
        return Span(bare.start(), bare.start() + len(value), key.label)
    return None


def _by_column(text: str, start: int, end: int, key: Key) -> Span | None:
    before = text[max(0, start - 40) : start]
    if not _ROW_START.search(before):
        return None
    found = _COLUMN.match(text, end)
    if found is None:
        return None
    value = found["v"]
    if value.startswith("=") or is_placeholder(value) or _UNITS_AFTER.match(text, found.end()):
        return None
    if is_password_like(value) or (is_shaped(value, 12) and not key.strong):
        return Span(found.start("v"), found.end("v"), key.label)
    return None


_ROW_START = re.compile(r"(?:^|\n|\\n)[ \t]{0,40}(?:[|\u2502\u2503*+-][ ]{0,20})?[\w ./-]{0,40}\Z")


def _is_label(value: str) -> bool:
    return re.fullmatch(r"[\w.-]+", value) is not None and has_noun(value)


def _by_table(text: str, start: int, end: int, key: Key) -> Iterator[Span]:
    """Rows of separated values under a head that names the column."""
    if text[end : end + 1] not in (",", ";", "\t", "\n", "\r", '"'):
        return
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    if last < 0 or last - first > 1_000 or not _TABLE_HEAD.fullmatch(text[first:last].rstrip("\r")):
        return
    above = text[text.rfind("\n", 0, max(0, first - 1)) + 1 : max(0, first - 1)]
    separator = next((c for c in ",;\t" if c in text[first:last]), "")
    if not separator or above.count(separator) == text.count(separator, first, last):
        return
    yield from _column(text, last + 1, separator, text.count(separator, first, start), key)


def _column(text: str, at: int, separator: str, column: int, key: Key) -> Iterator[Span]:
    width = None
    for _ in range(_MAX_ROWS):
        end = text.find("\n", at)
        row = text[at : end if end >= 0 else len(text)].rstrip("\r")
        cells = row.split(separator)
        width = width or len(cells)
        if len(cells) != width or column >= width or len(row) > 4_000:
            return
        first = at + sum(len(cell) + 1 for cell in cells[:column])
        value = cells[column].strip("\"' ")
        if value and is_secret_quoted(value, key):
            first += cells[column].index(value)
            yield Span(first, first + len(value), key.label)
        if end < 0:
            return
        at = end + 1


_TABLE_HEAD = re.compile(r"[\w \"'.-]{1,60}(?:[,;\t][\w \"'.-]{1,60}){1,40}")
_MAX_ROWS = 1_000


def _by_blank(text: str, start: int, end: int, key: Key, *, option: bool) -> Span | None:
    name = text[start:end].lower()
    before = text[max(0, start - 60) : start]
    setting = _SETTING_WORD.search(before) is not None
    directive = name.rsplit(".", 1)[-1] in _DIRECTIVE and _LINE_START.search(before) is not None
    found = _SPACE_VALUE.match(text, end)
    if found is None:
        return None
    first, value = found.start("v"), found["v"]
    if found["opening"]:
        last = closing_quote(text, first, found["opening"])
        value = text[first:last] if last > first else value
        if not (
            option
            or setting
            or directive
            or (key.strong and is_password_like(value) and not _is_label(value))
        ):
            return None
        return Span(first, first + len(value), key.label) if is_secret_quoted(value, key) else None
    if not (option or setting or directive):
        return None
    value = value.rstrip(",;)]}\\|")
    if value.startswith(("-", "=", ":", "/", "|", "id=")) or is_placeholder(value):
        return None
    if option:
        plain = value.isalpha() and (
            len(value) < 7 or _HELP.match(text, first + len(value)) is not None
        )
        if plain or not is_secret_bare(value, Key(key.label, True), config=True):
            return None
        return Span(first, first + len(value), key.label)
    if is_password_like(value) or (setting and is_secret_bare(value, key, config=True)):
        return Span(first, first + len(value), key.label)
    return None


_HELP = re.compile(r"[ ]{2,}[A-Z(]|\]")
