"""Values with a schema id, as Confluent's serializers write them: Avro, Protobuf and JSON Schema.

For all three formats an Avro record defines the columns (the *reader's* schema): the fields of all
versions of a subject. The schema that an id names (the *writer's*) defines what a value holds.
"""
