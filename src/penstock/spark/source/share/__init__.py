"""A share group as a streaming source: the driver locks records, tasks read them."""
