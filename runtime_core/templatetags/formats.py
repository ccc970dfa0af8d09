"""Numbers and times as people read them. Pure functions of values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

DASH = "–"
UNIT_STEP = 1000


def format_duration(value: timedelta | float | Decimal | str | None) -> str:
    """`40 ms`, `0.4 s`, `41 s`, `4 min 12 s`, `2 h 5 min`, `3 d 4 h`; a bare number is seconds."""
    if value is None or value == "":
        return DASH
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return _in_two_units(round(seconds))


def _in_two_units(seconds: int) -> str:
    for size, unit, small_size, small_unit in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            big, rest = divmod(seconds, size)
            small = rest // small_size
            return f"{big} {unit} {small} {small_unit}" if small else f"{big} {unit}"
    return f"{seconds} s"


def format_bytes(value: float | str | None) -> str:
    """`812 B`, `64 kB`, `1.2 MB`: decimal units."""
    if value is None or value == "":
        return DASH
    size = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < UNIT_STEP:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= UNIT_STEP
    return f"{size:.1f} TB"


def format_cost(value: Decimal | float | str | None) -> str:
    """`$0.41`, `$1,204.00`; below a cent two significant digits, `$0.00042`."""
    if value is None or value == "":
        return DASH
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return DASH
    if amount == 0 or abs(amount) >= Decimal("0.01"):
        return f"${amount:,.2f}"
    return f"${amount:.{1 - amount.adjusted()}f}"


def format_count(value: float | str | None) -> str:
    """`842`, `18.2k`, `182k`, `1.4M`."""
    if value is None or value == "":
        return DASH
    number = float(value)
    for unit in ("", "k", "M"):
        if abs(number) < UNIT_STEP:
            return f"{number:.1f}{unit}" if unit and abs(number) < 100 else f"{number:.0f}{unit}"
        number /= UNIT_STEP
    return f"{number:.1f}G"


def short_id(value: object) -> str:
    """The last eight characters of an id: the first ones of a UUIDv7 are its time and repeat."""
    return str(value).replace("-", "")[-8:]


def utc(moment: datetime) -> datetime:
    """The moment in UTC; a naive one is taken as UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def format_moment(moment: datetime, style: str = "relative") -> str:
    """What the server prints: `16:02:03` for style `clock`, else `29 Nov 2026 16:02 UTC`."""
    at = utc(moment)
    if style == "clock":
        return f"{at:%H:%M:%S}"
    return f"{at.day} {at:%b %Y %H:%M} UTC"
