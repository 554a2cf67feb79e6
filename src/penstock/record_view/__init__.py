"""Shows records to people and selects them: decoders, filters, templates.

Libraries that only some users need are in the extra `cli`, and are imported when first used.
"""
