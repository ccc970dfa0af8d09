"""Tool schemas for providers that know less of JSON Schema than ours use.

A plain schema says less to the model, and nothing is let in by it: a call's arguments are checked against the tool's
own schema, whatever the model was shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime_core.values import Json

_KEPT = ("type", "description", "enum", "required")
_MOST_DEEP = 12


def plain(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The schema of an object with types, names, descriptions and choices, and nothing else."""
    definitions = schema.get("$defs", {})
    found = _plain(schema, definitions if isinstance(definitions, Mapping) else {}, 0)
    return {"properties": {}, **found, "type": "object"}


def _plain(schema: Json, definitions: Mapping[str, Json], depth: int) -> dict[str, Json]:
    if not isinstance(schema, Mapping) or depth > _MOST_DEEP:
        return {}
    schema = _followed(schema, definitions)
    choice = _only_choice(schema)
    if choice is not None:
        inner = _plain(choice, definitions, depth + 1)
        return {**inner, **{key: schema[key] for key in ("description",) if key in schema}}
    kept: dict[str, Json] = {key: schema[key] for key in _KEPT if key in schema}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if isinstance(kept.get("type"), list):
        kinds = [kind for kind in kept["type"] if kind != "null"]
        kept.pop("type")
        kept |= {"type": kinds[0]} if len(kinds) == 1 else {}
    if isinstance(properties := schema.get("properties"), Mapping):
        kept["properties"] = {
            name: _plain(inner, definitions, depth + 1) for name, inner in properties.items()
        }
    if "items" in schema:
        kept["items"] = _plain(schema["items"], definitions, depth + 1)
    return kept


def _followed(schema: Mapping[str, Json], definitions: Mapping[str, Json]) -> Mapping[str, Json]:
    """The definition that a reference names, with what stands beside the reference."""
    target = schema.get("$ref")
    if not isinstance(target, str):
        return schema
    found = definitions.get(target.rpartition("/")[2])
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**found, **beside} if isinstance(found, Mapping) else beside


def _only_choice(schema: Mapping[str, Json]) -> Json:
    """The one alternative beside null, if there is just one; several cannot be said plainly."""
    choices = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(choices, list):
        return None
    real = [one for one in choices if not (isinstance(one, Mapping) and one.get("type") == "null")]
    return real[0] if len(real) == 1 else None
