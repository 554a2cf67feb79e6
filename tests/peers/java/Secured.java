import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The official client logs in and copies records through a topic, for each job of its arguments. */
public final class Secured {
    private static final String MODULES = "org.apache.kafka.common.security.";

    public static void main(String[] args) throws Exception {
        for (var arg : args) {
            copy(new ObjectMapper().readTree(arg));
        }
        System.exit(0);
    }

    private static void copy(com.fasterxml.jackson.databind.JsonNode job) throws Exception {
        var settings = settings(job);
        var topic = job.get("topic").asText();
        try (var admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        try (var producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (var value : job.get("values")) {
                producer.send(new ProducerRecord<>(topic, value.asText())).get();
            }
        }
        try (var consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var partition = List.of(new TopicPartition(topic, 0));
            consumer.assign(partition);
            consumer.seekToBeginning(partition);
            for (int read = 0; read < job.get("values").size(); ) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                    read++;
                }
            }
        }
    }

    private static Map<String, Object> settings(com.fasterxml.jackson.databind.JsonNode job)
            throws Exception {
        var found = new HashMap<String, Object>();
        var mechanism = job.get("mechanism").asText();
        found.put("bootstrap.servers", job.get("bootstrap").asText());
        found.put("security.protocol", "SASL_SSL");
        found.put("ssl.truststore.type", "PEM");
        found.put("ssl.truststore.location", job.get("ca").asText());
        found.put("sasl.mechanism", mechanism);
        if (mechanism.equals("OAUTHBEARER")) {
            var file = Files.createTempFile("token", ".jwt");
            Files.writeString(file, job.get("token").asText());
            var url = file.toUri().toString();
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", file.toString());
            found.put("sasl.oauthbearer.token.endpoint.url", url);
            found.put(
                    "sasl.login.callback.handler.class",
                    MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler");
            found.put("sasl.jaas.config", MODULES + "oauthbearer.OAuthBearerLoginModule required;");
            file.toFile().deleteOnExit();
        } else {
            var module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            found.put(
                    "sasl.jaas.config",
                    String.format(
                            "%s required username=\"%s\" password=\"%s\";",
                            MODULES + module,
                            job.get("username").asText(),
                            job.get("password").asText()));
        }
        return found;
    }
}
