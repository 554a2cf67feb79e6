import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads a queue with explicit acknowledgements; see tests/clients/share_go, which does the same. */
public final class Shared {
    public static void main(String[] args) throws Exception {
        int wanted = Integer.parseInt(args[3]);
        Map<String, Object> config = Map.of(
                "bootstrap.servers", args[0],
                "group.id", args[1],
                "max.poll.records", 50,
                "share.acknowledgement.mode", "explicit");
        var text = new StringDeserializer();
        Set<Integer> done = new HashSet<>();
        Set<Integer> renewed = new HashSet<>();
        long until = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        try (var consumer = new KafkaShareConsumer<>(config, text, text)) {
            consumer.subscribe(List.of(args[2]));
            while (done.size() < wanted) {
                if (System.nanoTime() > until) {
                    throw new IllegalStateException(done.size() + " of " + wanted + " records are done");
                }
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    int number = Integer.parseInt(record.value());
                    short delivery = record.deliveryCount().orElseThrow();
                    var verdict = verdict(number % 10, delivery, renewed.add(number));
                    consumer.acknowledge(record, verdict);
                    if (verdict == AcknowledgeType.ACCEPT || verdict == AcknowledgeType.REJECT) {
                        done.add(number);
                    }
                    System.out.println(number + " " + delivery + " " + verdict.toString().toLowerCase());
                }
                for (var failed : consumer.commitSync().values()) {
                    if (failed.isPresent()) {
                        throw failed.get();
                    }
                }
            }
        }
    }

    private static AcknowledgeType verdict(int last, short delivery, boolean isFirst) {
        if (last == 3 && delivery == 1) {
            return AcknowledgeType.RELEASE;
        }
        if (last == 5) {
            return AcknowledgeType.REJECT;
        }
        return last == 7 && isFirst ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT;
    }
}
