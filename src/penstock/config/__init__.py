"""Settings, declared once: parsing, DescribeConfigs, `--help` and the docs follow from it."""
