// main.js URL SUBJECT: registers a schema, writes a value by it and reads it back; prints the value in hex.
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

async function main([url, subject]) {
  const registry = new SchemaRegistry({ host: url });
  const schema = JSON.stringify({
    type: "record",
    name: "Order",
    namespace: "shop",
    fields: [{ name: "id", type: "long" }, { name: "note", type: "string", default: "" }],
  });
  const { id } = await registry.register({ type: SchemaType.AVRO, schema }, { subject });
  if ((await registry.getLatestSchemaId(subject)) !== id) throw new Error("another latest id");
  const value = await registry.encode(id, { id: 7, note: "from kafkajs" });
  const fresh = new SchemaRegistry({ host: url });
  const read = await fresh.decode(value);
  if (read.note !== "from kafkajs") throw new Error("read " + JSON.stringify(read));
  console.log(value.toString("hex"));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
