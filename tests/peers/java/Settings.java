import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * How Kafka itself declares and reads settings.
 *
 * <pre>
 * declared    {broker: {name: [type, default]}, topic, group: the same, updates, synonyms};
 *             updates and group are empty before Kafka 4
 * topic       for each line [name, text]: the value in Kafka's text form, or null if refused
 * properties  for each line "text": what java.util.Properties makes of it, or null if refused
 * </pre>
 */
public final class Settings {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws IOException, ReflectiveOperationException {
        if (args[0].equals("declared")) {
            System.out.println(declared());
            return;
        }
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Object answer = args[0].equals("topic") ? topic(line) : properties(line);
            System.out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static ObjectNode declared() throws ReflectiveOperationException {
        ObjectNode all = MAPPER.createObjectNode();
        all.set("broker", keys(KafkaConfig.configDef()));
        all.set("topic", keys(LogConfig.configDefCopy()));
        all.set("group", keys(groupConfig()));
        ObjectNode updates = all.putObject("updates");
        updateModes().forEach((name, mode) -> updates.put(name.toString(), mode.toString()));
        ObjectNode synonyms = all.putObject("synonyms");
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((topic, list) -> {
            ArrayNode into = synonyms.putArray(topic);
            // What a converter makes of "1" is its unit.
            list.forEach(each -> into.addArray().add(each.name()).add(each.converter().apply("1")));
        });
        return all;
    }

    private static Map<?, ?> updateModes() throws ReflectiveOperationException {
        try {
            Class<?> owner = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
            return (Map<?, ?>) owner.getMethod("dynamicConfigUpdateModes").invoke(null);
        } catch (ClassNotFoundException older) {
            return Map.of();
        }
    }

    private static ConfigDef groupConfig() throws ReflectiveOperationException {
        try {
            Class<?> owner = Class.forName("org.apache.kafka.coordinator.group.GroupConfig");
            return (ConfigDef) owner.getField("CONFIG_DEF").get(null);
        } catch (ClassNotFoundException | NoSuchFieldException older) {
            return new ConfigDef();
        }
    }

    private static ObjectNode keys(ConfigDef def) {
        ObjectNode keys = MAPPER.createObjectNode();
        for (ConfigDef.ConfigKey key : def.configKeys().values()) {
            if (!key.internalConfig) {
                Object fallback = key.hasDefault() ? key.defaultValue : null;
                keys.putArray(key.name).add(key.type.name())
                    .add(ConfigDef.convertToString(fallback, key.type));
            }
        }
        return keys;
    }

    private static String topic(String line) throws IOException {
        List<?> pair = MAPPER.readValue(line, List.class);
        ConfigDef def = LogConfig.configDefCopy();
        String name = (String) pair.get(0);
        try {
            Object value = def.parse(Map.of(name, pair.get(1))).get(name);
            return ConfigDef.convertToString(value, def.configKeys().get(name).type);
        } catch (ConfigException refused) {
            return null;
        }
    }

    private static Map<?, ?> properties(String line) throws IOException {
        Properties read = new Properties();
        try {
            read.load(new StringReader(MAPPER.readValue(line, String.class)));
        } catch (IllegalArgumentException refused) {
            return null;
        }
        return new TreeMap<>(read);
    }
}
