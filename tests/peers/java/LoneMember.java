import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** One member of a group with the official client; see tests/clients/lone_member.py. */
public final class LoneMember {
    public static void main(String[] args) throws Exception {
        String topic = args[2];
        var config = new HashMap<String, Object>(Map.of(
                "bootstrap.servers", args[0],
                "group.id", args[1],
                "group.protocol", "classic"));
        config.putAll(new ObjectMapper().readValue(args[3], new TypeReference<Map<String, Object>>() {}));
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            if (topic.startsWith("^")) {
                consumer.subscribe(Pattern.compile(topic), new Teller());
            } else {
                consumer.subscribe(List.of(topic), new Teller());
            }
            while (true) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    /** Prints how many partitions are held, whenever that changes: also within one poll. */
    private static final class Teller implements ConsumerRebalanceListener {
        private final Set<TopicPartition> held = new HashSet<>();
        private int told = -1;

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            held.addAll(partitions);
            tell();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            held.removeAll(partitions);
            tell();
        }

        private void tell() {
            if (held.size() != told) {
                told = held.size();
                System.out.println(told);
            }
        }
    }
}
