"""CRC-32C, in hardware where there is some.

The package crc32c loads a command line, its own metadata and so `email`, `zipfile` and others as
it is imported: 20 ms and 3 MB of a broker's start. Hence its extension is loaded alone.
"""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crc32c import crc32c
else:

    def _extension():
        package = find_spec("crc32c")
        spec = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if spec is None:  # missing, or laid out otherwise: what the package itself offers
            import crc32c

            return crc32c
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    crc32c = _extension().crc32c

__all__ = ["crc32c"]
