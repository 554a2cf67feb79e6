"""How people see records, and pick them: decoders, filters, templates.

Libraries that only some users want are in the extra `cli`, and imported when first needed.
"""
