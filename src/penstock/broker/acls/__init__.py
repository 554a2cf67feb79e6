"""The ACLs of the cluster: kept in the metadata store, and asked about each request."""
