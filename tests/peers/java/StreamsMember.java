import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescriptionStatus;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescription;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionNode;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionSubtopology;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * The client under Kafka Streams 4.4, without Kafka Streams: a static member of a streams group that
 * leaves and comes back under another id. Takes servers, a group and a topic; prints its tasks both
 * times, and what Admin tells of the group.
 */
public final class StreamsMember {
    public static void main(String[] args) throws Exception {
        String servers = args[0];
        String group = args[1];
        String topic = args[2];
        for (int time = 0; time < 2; time++) {
            var data = rebalanceData(topic);
            try (var consumer = consumer(servers, group, data);
                    var admin = Admin.create(Map.of("bootstrap.servers", servers))) {
                consumer.subscribe(Set.of(topic), listener(data));
                StreamsGroupDescription told = describe(admin, group);
                long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
                while (data.reconciledAssignment().activeTasks().isEmpty() || !isDescribed(told)) {
                    if (System.nanoTime() > deadline) {
                        throw new IllegalStateException("in vain: " + told);
                    }
                    consumer.poll(Duration.ofMillis(50));
                    told = describe(admin, group);
                }
                System.out.println("tasks " + data.reconciledAssignment().activeTasks().size());
                System.out.println("epoch " + told.groupEpoch());
                System.out.println("members " + told.members().size());
                System.out.println(
                        "instance " + told.members().iterator().next().instanceId().orElse("none"));
                System.out.println("assignor " + told.assignorName().orElse("none"));
                System.out.println("topology " + told.topologyDescription().orElseThrow());
            }
        }
    }

    private static boolean isDescribed(StreamsGroupDescription told) {
        return told != null
                && told.topologyDescriptionStatus()
                        == StreamsGroupTopologyDescriptionStatus.AVAILABLE;
    }

    /** Null: the group is not there yet. */
    private static StreamsGroupDescription describe(Admin admin, String group) throws Exception {
        var options = new DescribeStreamsGroupsOptions().includeTopologyDescription(true);
        try {
            return admin.describeStreamsGroups(List.of(group), options).all().get().get(group);
        } catch (java.util.concurrent.ExecutionException notYet) {
            return null;
        }
    }

    private static AsyncKafkaConsumer<String, String> consumer(
            String servers, String group, StreamsRebalanceData data) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("group.protocol", "consumer");
        settings.put("group.instance.id", "one");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        return new AsyncKafkaConsumer<>(
                new ConsumerConfig(settings),
                new StringDeserializer(),
                new StringDeserializer(),
                Optional.of(data));
    }

    private static StreamsRebalanceData rebalanceData(String topic) {
        var read =
                new StreamsRebalanceData.Subtopology(
                        Set.of(topic), Set.of(), Map.of(), Map.of(), List.of());
        var data =
                new StreamsRebalanceData(
                        new UUID(0, 1),
                        Optional.empty(),
                        Optional.empty(),
                        Map.of("0", read),
                        Map.of(),
                        Map::of,
                        Map::of);
        var source =
                new TopologyDescriptionNode()
                        .setName("the-source")
                        .setNodeType((byte) 1)
                        .setSourceTopics(List.of(topic));
        var part =
                new TopologyDescriptionSubtopology()
                        .setSubtopologyId("0")
                        .setNodes(List.of(source));
        data.setWireTopologyDescription(new TopologyDescription().setSubtopologies(List.of(part)));
        return data;
    }

    private static StreamsRebalanceListener listener(StreamsRebalanceData data) {
        return new StreamsRebalanceListener() {
            @Override
            public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) {}

            @Override
            public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                data.setReconciledAssignment(assignment);
            }

            @Override
            public void onAllTasksLost() {}
        };
    }
}
