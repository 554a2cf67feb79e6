"""The controller: replica placement, leader election, creation and deletion of topics."""
