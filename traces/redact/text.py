"""Text: one pass over keywords sends each place to the rule that knows it; then numbers and decoding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ahocorasick_rs import AhoCorasick, MatchKind

from traces.redact import assignments, commands, prose
from traces.redact.assignments import find_assignment, is_open_value, name_around
from traces.redact.blocks import find_private_keys, find_secret_data
from traces.redact.columns import find_columns
from traces.redact.commands import (
    CALL_WORDS,
    COMMAND_WORDS,
    PRINT_WORDS,
    find_call,
    find_command,
    find_lines,
    find_printed,
)
from traces.redact.decode import find_decoded
from traces.redact.families import (
    FAMILIES,
    GENERIC_KEYWORDS,
    find_aws_secret_after,
    find_discord,
    find_generic,
)
from traces.redact.marker import Span
from traces.redact.numbers import find_emails, find_ibans, find_numbers
from traces.redact.prose import PROSE_WORDS, find_pin, find_prose
from traces.redact.urls import (
    find_authorization,
    find_basic,
    find_bearer,
    find_cookies,
    find_digest,
    find_oracle,
    find_query,
    find_signature,
    find_userinfo,
)

Rule = Callable[[str, int, int], Iterator[Span]]
Find = Callable[[str, int], Iterator[Span]]

_NAME_WORDS = (
    "pass pwd psw pw secret token key cred auth cookie sid csrf xsrf sig psk pin otp seed mnemonic salt "
    "kennwort wachtwoord senha mdp contrasena contraseña heslo haslo hasło parola sifre şifre пароль jwt pat= community "
    "密码 密碼 口令 密钥 密鑰 金鑰 令牌 权杖 パスワード シークレット 비밀번호 암호 lösenord passord jelszó"
).split()
_LONG = 64
_TAIL = 4_400


class _Row:
    """What one keyword starts: its rules, and how far behind it their values may begin."""

    __slots__ = ("names", "reach", "rules", "several_lines")

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.names = False
        self.reach = 0
        self.several_lines = False

    def add(self, rule: Rule, reach: int, *, several_lines: bool = False) -> None:
        self.rules.append(rule)
        self.reach = max(self.reach, reach)
        self.several_lines = self.several_lines or several_lines


class _Table:
    """Keywords and the rules they start."""

    def __init__(self) -> None:
        self.rows: dict[str, _Row] = {}

    def row(self, word: str) -> _Row:
        return self.rows.setdefault(word, _Row())

    def add(
        self, words: Iterable[str], find: Find, reach: int, *, several_lines: bool = False
    ) -> None:
        for word in words:
            rule: Rule = _start_rule(find)
            self.row(word).add(rule, reach, several_lines=several_lines)


def _start_rule(find: Find) -> Rule:
    return lambda text, start, end: find(text, start)


def _build_table() -> dict[str, _Row]:
    table = _Table()
    _add_families(table)
    _add_words(table)
    _add_addresses(table)
    return table.rows


def _add_families(table: _Table) -> None:
    for family in FAMILIES:
        for prefix in family.prefixes:
            rule = _family_rule(family.match, aws=family.label == "aws_key_id")
            table.row(prefix).add(rule, 0)
    table.add(GENERIC_KEYWORDS, find_generic, 0)


def _add_words(table: _Table) -> None:
    for word in PROSE_WORDS:
        table.row(word).add(_prose_rule(word), prose.REACH)
    table.add(["pin "], find_pin, 32)
    for word in COMMAND_WORDS:
        table.row(word).add(_command_rule(word), commands.REACH)
    table.add(CALL_WORDS, find_call, commands.REACH)
    table.add(PRINT_WORDS, find_printed, commands.REACH, several_lines=True)
    for word in _NAME_WORDS:
        table.row(word).names = True
        table.row(word).add(_no_rule, assignments.REACH, several_lines=True)


def _add_addresses(table: _Table) -> None:
    table.add(["://"], find_userinfo, 0)
    table.add("?&;", find_query, 0)
    table.add(_ORACLE_WORDS, find_oracle, 48)
    table.add(["authorization"], find_authorization, 64)
    table.add(["bearer "], find_bearer, 4)
    table.add(["basic "], find_basic, 4)
    table.add(["signature="], find_signature, 0)
    table.add(['response="', 'cnonce="'], find_digest, 0)
    table.add(["cookie"], find_cookies, 4_096)


_ORACLE_WORDS = ("thin:", "sqlplus", "exp ", "imp ", "expdp", "impdp", "userid=", "rman target")


def _family_rule(match: Callable[[str, int], Span | None], *, aws: bool) -> Rule:
    def rule(text: str, start: int, end: int) -> Iterator[Span]:
        span = match(text, start)
        if span is not None:
            yield span
            if aws:
                yield from find_aws_secret_after(text, span.end)

    return rule


def _prose_rule(word: str) -> Rule:
    return lambda text, start, end: find_prose(text, start, end, word)


def _command_rule(word: str) -> Rule:
    return lambda text, start, end: find_command(text, start, word)


def _no_rule(text: str, start: int, end: int) -> Iterator[Span]:
    return iter(())


_TABLE = _build_table()
_WORDS = list(_TABLE)
_ROWS = [_TABLE[word] for word in _WORDS]
_SEARCH = AhoCorasick(_WORDS, matchkind=MatchKind.Standard)


def lower_same_length(text: str) -> str:
    """Lower case, keeping every character at its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def find_secrets(text: str) -> list[Span]:
    """Find secrets by keyword, shape and block, without decoding."""
    spans, has_names = _find_by_keyword(text)
    spans.extend(find_lines(text))
    if "PRIVATE" in text or "Private-Lines" in text:
        spans.extend(find_private_keys(text))
    if _MAY_HOLD_DATA.search(text):
        spans.extend(find_secret_data(text))
    if "." in text:
        spans.extend(find_discord(text))
    if has_names:
        spans.extend(find_columns(text))
    return spans


def _find_by_keyword(text: str) -> tuple[list[Span], bool]:
    """What keywords lead to, and whether any word stands there that names secrets."""
    spans: list[Span] = []
    has_names = False
    skip_until = -1
    named_until = -1
    for index, start, end in _SEARCH.find_matches_as_indexes(
        lower_same_length(text), overlapping=True
    ):
        if start < skip_until:
            continue
        row = _ROWS[index]
        found: list[Span] = []
        if row.names:
            has_names = True
            first, last = name_around(text, start, end)
            if last > named_until:
                named_until = last
                found.extend(find_assignment(text, first, last))
        for rule in row.rules:
            found.extend(rule(text, start, end))
        for span in found:
            # Inside a long match nothing more is to be found; looking again would cost square time.
            if span.start <= start + _LONG and span.end - span.start > _LONG:
                skip_until = max(skip_until, span.end)
        spans.extend(found)
    return spans, has_names


def find_personal(text: str) -> list[Span]:
    """Find numbers and addresses of people."""
    spans = list(find_numbers(text))
    spans.extend(find_ibans(text))
    if "@" in text:
        spans.extend(find_emails(text))
    return spans


def find_all(text: str, find_known: Callable[[str], list[Span]]) -> list[Span]:
    """Find everything: known values, secrets, people's numbers, and secrets two decodings deep."""

    def once(plain: str) -> list[Span]:
        return [*find_known(plain), *find_secrets(plain), *find_personal(plain)]

    def secrets(plain: str) -> list[Span]:
        return [*find_known(plain), *find_secrets(plain)]

    def decoded(plain: str) -> list[Span]:
        return [*secrets(plain), *find_decoded(plain, secrets)]

    return [*once(text), *find_decoded(text, decoded)]


def open_from(text: str, first: int) -> int:
    """Return the earliest place at or after `first` whose rule may still need text that is not here yet."""
    earliest = len(text)
    tail_start = max(first, len(text) - _TAIL)
    for index, start, end in _SEARCH.find_matches_as_indexes(
        lower_same_length(text[tail_start:]), overlapping=True
    ):
        row = _ROWS[index]
        if not row.reach or tail_start + start >= earliest:
            continue
        begin, behind = tail_start + start, tail_start + end
        near = len(text) - behind <= row.reach
        if (near and (row.several_lines or "\n" not in text[behind:])) or (
            row.names and is_open_value(text, begin, behind)
        ):
            earliest = begin
    return earliest


_MAY_HOLD_DATA = re.compile(r"ata\\*\"?:|secrets?[:\]]|credentials?[:\]]|passwords?\]")
_OPEN_BLOCK = re.compile(
    r"(?:^|\n)[ ]{0,12}(?:(?:data|stringData|binaryData|secrets|credentials):|\[(?:secrets?|credentials?|passwords?)\])"
    r"[ ]*\r?\n(?:[ ]{0,16}[\w.\-/\"']{1,100}[ ]{0,20}[:=][^\n]*\n)*[^\n]*\Z"
    r"|\"(?:data|binaryData)\\*\"\s?:\s?\{[^{}]{0,16384}\Z"
)


def block_open_from(text: str, first: int) -> int:
    """Return where an unfinished block of secret data begins, or the length of the text."""
    if not _MAY_HOLD_DATA.search(text, first):
        return len(text)
    found = _OPEN_BLOCK.search(text, first)
    return found.start() if found else len(text)
