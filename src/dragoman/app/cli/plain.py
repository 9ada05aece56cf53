"""Typed words become values without pydantic, which typer would load for it: 0.25 s on every command."""

from __future__ import annotations

from typing import Any

import typer
import typer.core
from typer._coercion import RuntimeParam, TypeDescriptor

__all__ = ["load_no_pydantic"]


class Plain(RuntimeParam):
    """Text, yes or no, whole numbers, and lists of text: our options are nothing else."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        if param.multiple or param.nargs == -1:
            return list(value)
        if self.annotation is bool:
            return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes", "on")
        return self._number(value, param, ctx) if self.annotation is int else str(value)

    def _number(self, value: Any, param: Any, ctx: Any) -> int:
        try:
            number = int(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not a whole number", ctx=ctx, param=param) from None
        least, most = self.parameter_info.min, self.parameter_info.max
        if (least is not None and number < least) or (most is not None and number > most):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise typer.BadParameter(f"{number} is not {bounds}", ctx=ctx, param=param)
        return number


def _plain(descriptor: TypeDescriptor) -> RuntimeParam:
    return Plain(annotation=descriptor.annotation, parameter_info=descriptor.parameter_info)


def load_no_pydantic() -> None:
    """Let typer take its values from here."""
    typer.core.build_runtime_param = _plain  # type: ignore[attr-defined]
