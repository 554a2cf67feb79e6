"""How `penstock log dump` shows keys and values, by topic, in the form of Kafka's own tool.

A topic whose records have a format of their own adds a line; its decoder is imported when used.
"""

from importlib import import_module

from penstock.log.inspection.dump import Decoder, text_decoder

DECODERS = {
    "__consumer_offsets": "penstock.cli.internal_records:group_record",
    "__transaction_state": "penstock.cli.internal_records:transaction_record",
    "__cluster_metadata": "penstock.cli.internal_records:metadata_record",
}
"""Topic → `module:function`, a `Decoder`. Topics that are not here show text."""


def decoder_for(topic: str | None) -> Decoder:
    if topic not in DECODERS:
        return text_decoder
    module, _, function = DECODERS[topic].partition(":")
    decoder: Decoder = getattr(import_module(module), function)
    return decoder
