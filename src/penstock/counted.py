"""A number with its noun, in texts that people read: `1 record`, `2 records`."""


def counted(count: int, one: str, many: str = "") -> str:
    """The number and the noun, as in `counted(2, "record")`.

    `many` is the plural if it does more than add an s: `counted(2, "record was", "records were")`.
    """
    return f"{count} {one if count == 1 else many or one + 's'}"
