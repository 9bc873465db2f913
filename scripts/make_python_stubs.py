#!/usr/bin/env python3
"""make_python_stubs.py FOLDER [--check]: writes src/python/redco/_redco.pyi, the types of the functions in C++, for
editors, from the docstrings of the built module in FOLDER (build/python). --check: fails if the file differs."""

import inspect
import os
import re
import sys

folder, check = sys.argv[1], "--check" in sys.argv
sys.path.insert(0, folder)
import redco._redco as module  # noqa: E402

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "python", "redco", "_redco.pyi")
KEYWORDS = {"in": "in_"}


def cleaned(signature):
    s = signature.replace("redco._redco.", "").replace("numpy.", "numpy.")
    s = re.sub(r"<[^<>]* object at 0x[0-9a-f]+>", "...", s)
    s = re.sub(r"= <[^>]*>", "= ...", s)
    s = re.sub(r"\b(handle|object)\b", "Any", s)
    s = re.sub(r"Callable\[\[[^\]]*\], [^\]]*\]", "Callable", s)
    s = s.replace("std::", "").replace("List[", "list[").replace("Dict[", "dict[").replace("Tuple[", "tuple[")
    s = s.replace("function", "Callable").replace(": buffer", ": numpy.ndarray")
    return s


def definitions(name, doc, indent, method, function=None):
    """Overloads and docstring of a function, from pybind11's docstring."""
    lines = (doc or "").strip().split("\n")
    if inspect.isfunction(function):  # a method that is written in Python
        parameters = inspect.signature(function).parameters.values()
        shown = ", ".join(str(p.replace(name="self" if k == 0 else p.name)) for k, p in enumerate(parameters))
        return [f"{indent}def {name}({shown}) -> Any:" + ("" if doc else " ...")] + (
            [f'{indent}    """{inspect.cleandoc(doc)}"""'] if doc else [])
    found = [m.group(2) for m in (re.match(r"(\d+\. )?" + re.escape(name) + r"(\(.*)$", x.strip()) for x in lines) if m]
    if len(found) > 1:
        found = found[1:]  # the first line is NAME(*args, **kwargs)
    text = [x.strip() for x in lines if x.strip() and not re.match(r"(\d+\. )?" + re.escape(name) + r"\(", x.strip())
            and x.strip() != "Overloaded function."]
    out = []
    for signature in found or ["(*args, **kwargs) -> Any"]:
        signature = cleaned(signature)
        if " -> " not in signature:
            signature += " -> Any"
        if "::" in signature or "*args" in signature:
            signature = "(self, *args, **kwargs) -> Any" if method else "(*args, **kwargs) -> Any"
        if len(found) > 1:
            out.append(f"{indent}@overload")
        out.append(f"{indent}def {name}{signature}:" + ("" if text else " ..."))
        if text:
            out.append(f'{indent}    """{" ".join(text)}"""')
    return out


def main():
    out = ['"""The types of redco._redco. Written by scripts/make_python_stubs.py."""', "",
           "from typing import Any, Callable, Iterator, Optional, Union, overload", "", "import numpy", ""]
    functions = []
    for name in sorted(vars(module)):
        value = vars(module)[name]
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            base = value.__bases__[0].__name__
            head = f"class {name}" + (f"({base})" if base not in ("pybind11_object", "object") else "") + ":"
            body = []
            if value.__doc__:
                body.append(f'    """{value.__doc__.strip()}"""')
            for member in sorted(vars(value)):
                x = vars(value)[member]
                if member == "__init__" and not (x.__doc__ or "").startswith("__init__("):
                    continue
                if member.startswith("__") and member not in (
                        "__init__", "__getitem__", "__contains__", "__len__", "__iter__", "__add__", "__radd__", "__sub__",
                        "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__matmul__", "__pow__",
                        "__neg__", "__lt__", "__le__", "__gt__", "__ge__", "__float__", "__enter__", "__exit__"):
                    continue
                if isinstance(x, property):
                    m = re.search(r"-> ([\w.\[\], ]+)", cleaned(x.fget.__doc__ or ""))
                    body += ["    @property", f"    def {member}(self) -> {m.group(1) if m else 'Any'}: ..."]
                else:
                    body += definitions(member, x.__doc__, "    ", True, x)
            functions += ["", head] + (body or ["    ..."])
        elif callable(value):
            functions += definitions(name, value.__doc__, "", False)
    text = "\n".join(out + functions) + "\n"
    if check:
        old = open(TARGET).read() if os.path.exists(TARGET) else ""
        if old != text:
            sys.exit(f"{os.path.normpath(TARGET)} differs from the module; run {sys.argv[0]} {folder}")
        return
    with open(TARGET, "w") as f:
        f.write(text)


main()
