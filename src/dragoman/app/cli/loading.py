"""How an author's file becomes agents: it is imported, and the agents in it are found."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from ...agents.agent import Agent
from .failures import Failure

__all__ = ["load_agents"]

CODE = "DRAGOMAN_ERR_AGENT_FILE"


def load_agents(targets: Sequence[str]) -> list[Agent]:
    """The agents that `FILE`, `FILE:name` or `module:name` say, in their order, each once."""
    found: dict[int, Agent] = {}
    for target in targets:
        for agent in _of_target(target):
            found[id(agent)] = agent
    agents = list(found.values())
    for agent in agents:
        try:
            _ = agent.drive
        except ValueError as wrong:
            raise Failure(CODE, str(wrong)) from None
    names = [agent.name for agent in agents]
    for name in names:
        if names.count(name) > 1:
            raise Failure(
                CODE, f"two agents are named {name!r}", "Each agent of a node needs a name of its own."
            )
    return agents


def _of_target(target: str) -> list[Agent]:
    place, _, name = target.partition(":")
    if place.endswith(".py") or "/" in place or Path(place).is_file():
        module = _from_file(Path(place))
    else:
        module = _from_module(place)
    if name:
        return [_named(module, place, name)]
    agents = [value for value in vars(module).values() if isinstance(value, Agent)]
    if not agents:
        raise Failure(CODE, f"{place} has no Agent in it", _advice(module, place))
    return agents


def _named(module: ModuleType, place: str, name: str) -> Agent:
    value = getattr(module, name, None)
    if value is None:
        by_name = [it for it in vars(module).values() if isinstance(it, Agent) and it.name == name]
        if not by_name:
            raise Failure(CODE, f"{place} has no {name!r}", _advice(module, place))
        return by_name[0]
    if isinstance(value, Agent):
        return value
    if callable(value) and not isinstance(value, type):
        return Agent(name, value)
    raise Failure(CODE, f"{name!r} in {place} is neither an Agent nor a function", _advice(module, place))


def _advice(module: ModuleType, place: str) -> str:
    """What could have been meant."""
    things = [
        name
        for name, value in vars(module).items()
        if isinstance(value, Agent)
        or (inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_")
    ]
    if things:
        return f"It has {', '.join(things)}: dragoman serve {place}:{things[-1]}"
    return 'An agent is: agent = Agent("name", function), where `async def function(turn)` takes a turn.'


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise Failure(CODE, f"there is no file {path}", "`dragoman init agent` writes one to begin with.")
    # A name that shadows nobody: an author may well call a file json.py.
    name = f"dragoman_file_{path.stem}_{len(sys.modules)}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Failure(CODE, f"{path} is not a Python file", "Its name ends in .py.")
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as wrong:
        raise _broken(str(path), wrong) from None
    return module


def _from_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return import_module(name)
    except ModuleNotFoundError as wrong:
        if wrong.name and (name == wrong.name or name.startswith(wrong.name + ".")):
            raise Failure(
                CODE, f"there is neither a file nor a module {name!r}", "Files end in .py."
            ) from None
        raise _broken(name, wrong) from None
    except Exception as wrong:
        raise _broken(name, wrong) from None


def _broken(place: str, wrong: Exception) -> Failure:
    """The author's mistake, told from the author's first line on and not from ours."""
    frames = wrong.__traceback__
    while frames is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    trace = "".join(traceback.format_exception(type(wrong), wrong, frames))
    return Failure(CODE, f"{place} cannot be imported: {type(wrong).__name__}: {wrong}", more=trace)


def _is_ours(file: str) -> bool:
    return file == __file__ or "importlib" in file
