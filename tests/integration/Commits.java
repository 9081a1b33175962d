import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What Kafka's own client says of a cluster's groups. A line on stdin is a command, all words but numbers in base64:
 * "read" prints every group and its commits, "commit GROUP TOPIC PARTITION OFFSET METADATA" sets one. Each ends in a dot.
 */
public class Commits {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            String line;
            while ((line = lines.readLine()) != null) {
                String[] words = line.split(" ", -1);
                if (words[0].equals("read")) {
                    read(admin);
                } else {
                    var place = new TopicPartition(decoded(words[2]), Integer.parseInt(words[3]));
                    var commit = new OffsetAndMetadata(Long.parseLong(words[4]), decoded(words[5]));
                    admin.alterConsumerGroupOffsets(decoded(words[1]), Map.of(place, commit)).all().get();
                }
                System.out.println(".");
                System.out.flush();
            }
        }
    }

    private static void read(Admin admin) throws Exception {
        Map<String, ListConsumerGroupOffsetsSpec> asked = new HashMap<>();
        for (var group : admin.listConsumerGroups().all().get()) {
            asked.put(group.groupId(), new ListConsumerGroupOffsetsSpec());
        }
        if (asked.isEmpty()) {
            return;
        }
        StringBuilder text = new StringBuilder();
        for (var group : admin.listConsumerGroupOffsets(asked).all().get().entrySet()) {
            text.append("group ").append(encoded(group.getKey())).append("\n");
            for (var commit : group.getValue().entrySet()) {
                if (commit.getValue() != null) {
                    var words = List.of(
                        "commit", encoded(group.getKey()), encoded(commit.getKey().topic()),
                        String.valueOf(commit.getKey().partition()), String.valueOf(commit.getValue().offset()),
                        encoded(commit.getValue().metadata()));
                    text.append(String.join(" ", words)).append("\n");
                }
            }
        }
        System.out.print(text);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }
}
