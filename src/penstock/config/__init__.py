"""Settings, each declared once: parsing, DescribeConfigs, `--help` and the docs are derived."""
