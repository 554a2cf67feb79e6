"""The controller: where replicas go, who leads, how topics live and die."""
