"""Groups that move between the classic and the consumer protocol while they run (KIP-848).

A classic group is upgraded when its first member of the consumer protocol joins; its classic
members stay in the group. When the last member of the consumer protocol has left, the group is
downgraded. `group.consumer.migration.policy` allows one direction, both or neither.
"""
