"""How `penstock log dump` shows keys and values of each topic, like Kafka's own tool.

A topic whose records have a special format has an entry here; its decoder is imported when used.
"""

from importlib import import_module

from penstock.errors import ConfigError
from penstock.log.inspection.dump import Decoder, text_decoder

DECODERS = {
    "__consumer_offsets": "penstock.record_view.internal:group_record",
    "__transaction_state": "penstock.record_view.internal:transaction_record",
    "__share_group_state": "penstock.record_view.internal:share_record",
    "__cluster_metadata": "penstock.record_view.internal:metadata_record",
}
"""Topic → `module:function` of a `Decoder`. Other topics are shown as text."""


def known_decoder(name: str) -> str:
    """The topic of a decoder name, whose leading `__` may be omitted."""
    for topic in DECODERS:
        if name in {topic, topic.removeprefix("__")}:
            return topic
    raise ConfigError(f"--decoder {name}: there are {', '.join(DECODERS)}")


def decoder_for(topic: str | None) -> Decoder:
    if topic not in DECODERS:
        return text_decoder
    module, _, function = DECODERS[topic].partition(":")
    decoder: Decoder = getattr(import_module(module), function)
    return decoder
