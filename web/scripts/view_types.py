"""The browser's types of the server's answers, written from the OpenAPI document: `make types`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer

OUT = Path(__file__).parents[1] / "src" / "lib" / "views.ts"
HEAD = "/** What the server's views answer: written by `make types` from their declarations in inspect/. */\n"
PLAIN = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def answers(document: dict[str, Any]) -> dict[str, Any]:
    """The schemas of all answers, and of what these are made of, by name."""
    schemas = document["components"]["schemas"]
    found: dict[str, Any] = {}

    def follow(part: Any) -> None:
        if isinstance(part, dict):
            name = part.get("$ref", "").rpartition("/")[2]
            if name and name not in found:
                found[name] = schemas[name]
                follow(schemas[name])
            for inner in part.values():
                follow(inner)
        elif isinstance(part, list):
            for inner in part:
                follow(inner)

    for ways in document["paths"].values():
        for told in ways.values():
            follow(told["responses"]["200"])
    return dict(sorted(found.items()))


def type_name(schema: str) -> str:
    """A schema that is asked and answered with has two names, "Shown-Input" and "Shown-Output": the answer is told."""
    return schema.removesuffix("-Output")


def as_type(schema: dict[str, Any]) -> str:
    """A schema as a TypeScript type."""
    if "$ref" in schema:
        return type_name(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(as_type(one) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " | ".join(f"'{one}'" for one in schema.get("enum", [schema.get("const")]))
    if "prefixItems" in schema:
        return f"[{', '.join(as_type(one) for one in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        inner = as_type(schema["items"])
        return f"({inner})[]" if {"anyOf", "enum"} & schema["items"].keys() else f"{inner}[]"
    if schema.get("type") == "object":
        more = schema.get("additionalProperties", True)
        return f"Record<string, {as_type(more) if isinstance(more, dict) else 'unknown'}>"
    return PLAIN.get(schema.get("type", ""), "unknown")


def interface(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    lines = [f"  {one}{'' if one in required else '?'}: {as_type(kind)};" for one, kind in schema["properties"].items()]
    about = f"/** {schema['description']} */\n" if schema.get("description") else ""
    return f"{about}export interface {type_name(name)} {{\n" + "\n".join(lines) + "\n}\n"


def written() -> str:
    """The whole file."""
    explorer = Explorer()
    try:
        document = create_app(explorer).openapi()
    finally:
        explorer.close()
    return "\n".join([HEAD, *(interface(name, schema) for name, schema in answers(document).items())])


def main() -> None:
    text = written()
    if "--check" not in sys.argv:
        OUT.write_text(text, encoding="utf-8")
    elif OUT.read_text(encoding="utf-8") != text:
        sys.exit(f"{OUT} is out of date: a view has changed. Run `make types`.")


if __name__ == "__main__":
    main()
