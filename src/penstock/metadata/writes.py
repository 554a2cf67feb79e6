"""Single writes of a store, made of its multis."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from penstock.metadata.errors import StoreError
from penstock.metadata.store import ANY_VERSION, Answer, Create, Delete, Node, Operation, Set


class Writes(ABC):
    """The write methods of `MetadataStore`, on top of `multi_many`."""

    @abstractmethod
    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]: ...

    async def multi(self, operations: Sequence[Operation]) -> list[Answer]:
        (answers,) = await self.multi_many((operations,))
        if isinstance(answers, StoreError):
            raise answers
        return answers

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        created = await self._write(Create(path, data, ephemeral, sequential))
        assert isinstance(created, str)
        return created

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Node:
        written = await self._write(Set(path, data, version))
        assert isinstance(written, Node)
        return written

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._write(Delete(path, version))

    async def _write(self, operation: Operation) -> Answer:
        try:
            (answer,) = await self.multi((operation,))
        except StoreError as error:
            raise type(error)(error.path) from None  # without a position in a multi
        return answer
