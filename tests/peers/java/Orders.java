import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * The turnover of each city and minute: orders by customer, joined with the table of customers'
 * cities, grouped anew by city and summed up in windows. Takes the three topics and settings of
 * Kafka Streams as name=value, and runs until it is stopped.
 */
public final class Orders {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        for (String pair : Arrays.copyOfRange(args, 3, args.length)) {
            String[] parts = pair.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        var text = Serdes.String();
        var builder = new StreamsBuilder();
        var cities = builder.table(args[1], Consumed.with(text, text));
        builder.stream(args[0], Consumed.with(text, text))
                .join(cities, (amount, city) -> city + " " + amount)
                .map((customer, order) -> {
                    String[] parts = order.split(" ");
                    return KeyValue.pair(parts[0], Long.valueOf(parts[1]));
                })
                .groupByKey(Grouped.with(text, Serdes.Long()))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofDays(1)))
                .aggregate(() -> 0L, (city, amount, sum) -> sum + amount,
                        Materialized.with(text, Serdes.Long()))
                .toStream((window, sum) -> window.key() + "@" + window.window().start())
                .mapValues(sum -> Long.toString(sum))
                .to(args[2], Produced.with(text, text));
        try (var streams = new KafkaStreams(builder.build(settings), settings)) {
            streams.setStateListener((now, before) -> System.out.println("state " + now));
            // Or what it has done since its last commit would be done again by the next one.
            Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
            streams.start();
            while (streams.state() != KafkaStreams.State.ERROR) {
                Thread.sleep(50);
            }
        }
        System.exit(1);
    }
}
