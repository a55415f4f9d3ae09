"""All drills by name, one function each, by what fails."""

from importlib import import_module
from pkgutil import iter_modules

from ha.drill.drill import DRILLS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["DRILLS"]
