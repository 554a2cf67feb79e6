"""Groups that move between the classic and the consumer protocol while they run (KIP-848).

A classic group becomes one of the consumer protocol when its first member of that protocol comes;
its other members live on inside of it. When the last such member has gone it is classic again.
`group.consumer.migration.policy` allows one way, both or neither.
"""
