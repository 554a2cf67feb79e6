"""The ACLs of the cluster: stored in the metadata store, and checked for each request."""
