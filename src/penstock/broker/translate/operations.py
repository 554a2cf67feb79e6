"""Authorized operations, as bits of Kafka's AclOperation codes.

Without access control, every principal may do everything.
"""

TOPIC_OPERATIONS = 0b1101_1111_1000
GROUP_OPERATIONS = 0b1101_0100_1000
CLUSTER_OPERATIONS = 0b1_1111_1010_0000
NOT_ASKED = -(2**31)
