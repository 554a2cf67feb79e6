"""CRC-32C, in hardware where there is some.

On import, the package crc32c loads a command line and its own metadata, and with them `email`,
`zipfile` and others: 20 ms and 3 MB of a broker's start. Hence its extension is loaded alone.
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
        if spec is None:  # missing, or laid out otherwise: use the package itself
            import crc32c

            return crc32c
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    crc32c = _extension().crc32c

__all__ = ["crc32c"]
