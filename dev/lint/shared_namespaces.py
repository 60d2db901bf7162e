"""Compares the imports from a namespace that several distributions share (airflow.*) with what pyproject.toml declares.

deptry knows packages by the first word of an import: for it, one declared provider of Airflow covers all of them. Here
each import is looked up in the file lists of the installed distributions.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
PRODUCT = REPOSITORY / "include"


def declared(pyproject: Path) -> set[str]:
    """The distributions of the dependencies and of all extras."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return {canonicalize_name(Requirement(line).name) for line in lines}


def differences(product: Path, known: set[str]) -> Iterator[str]:
    """Names imports whose distribution is not `known`, then `known` distributions that nothing imports: a line each."""
    owners = _owners_of_shared_modules()
    shared = {module.partition(".")[0] for module in owners}
    unused = known & set(owners.values())
    for path in sorted(product.rglob("*.py")):
        for line, module in _imported(ast.parse(path.read_text("utf-8"))):
            if module.partition(".")[0] not in shared:
                continue
            owner = _owner(module, owners)
            unused.discard(owner or "")
            if owner not in known:
                yield f"{path}:{line}: {module} belongs to {owner or 'no installed distribution'}: not declared"
    yield from (f"{name}: declared, and nothing imports it" for name in sorted(unused))


def _owners_of_shared_modules() -> dict[str, str]:
    """Dotted modules of the namespaces with several distributions, and the distribution of each."""
    shared = {top: names for top, names in packages_distributions().items() if len(set(names)) > 1}
    found: dict[str, str] = {}
    for top, names in shared.items():
        for name in sorted(set(names)):
            for file in distribution(name).files or ():
                if file.suffix == ".py" and file.parts[0] == top:
                    parts = file.parts[:-1] if file.name == "__init__.py" else file.with_suffix("").parts
                    found[".".join(parts)] = canonicalize_name(name)
    return found


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of each import; a name that is imported from a package can be a module of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{one.name}") for one in node.names)


def _owner(module: str, owners: dict[str, str]) -> str | None:
    """The distribution of the longest part of the name that is a module."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((owners[name] for name in names if name in owners), None)


def main() -> int:
    """1 if there is a difference."""
    lines = list(differences(PRODUCT, declared(REPOSITORY / "pyproject.toml")))
    if not lines:
        print("imports from shared namespaces fit pyproject.toml")
        return 0
    print("\n".join(lines))
    print("Remedy: correct the dependencies or the extras in pyproject.toml.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
