"""Values with a schema id, as Confluent's serializers write them: Avro, Protobuf and JSON Schema.

The columns of all three are said by an Avro record, the *reader's*: the fields of all versions that
a subject has. What a value has is said by its own schema, the *writer's*.
"""
