"""The batches of a segment with their records, in large reads."""

from collections.abc import Iterator
from pathlib import Path

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.record.batch import HEADER_BYTES, BatchHeader, CorruptBatch, crc_matches, read_header


def whole_batches(
    files: Files, path: Path, size_bytes: int, buffer_bytes: int
) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Each batch of the first `size_bytes`, as a view that is valid until the next one is
    requested.

    CRCs are checked, so that damage is not copied as if it were whole; `CorruptFile` says where it
    is.
    """
    file = files.open(path)
    position, wanted = 0, buffer_bytes
    while position < size_bytes:
        asked = min(wanted, size_bytes - position)
        chunk = memoryview(file.read(position, asked))
        at, wanted = 0, max(buffer_bytes, HEADER_BYTES)
        while len(chunk) - at >= HEADER_BYTES:
            header = _header(path, chunk, position, at)
            end = at + header.size_bytes
            if end > len(chunk):
                wanted = max(wanted, header.size_bytes)
                break
            batch = chunk[at:end]
            if not crc_matches(batch, header):
                raise CorruptFile(str(path), f"has a wrong CRC at byte {position + at}")
            yield batch, header
            at = end
        position += at
        if len(chunk) < asked or (at == 0 and asked == size_bytes - position):
            # The file was cut meanwhile, or the batch says that it is longer than the file.
            raise CorruptFile(str(path), f"ends within the batch at byte {position}")
    file.close()


def _header(path: Path, chunk: memoryview, position: int, at: int) -> BatchHeader:
    try:
        return read_header(chunk, at)
    except CorruptBatch as error:
        raise CorruptFile(str(path), f"has no batch at byte {position + at}: {error}") from None
