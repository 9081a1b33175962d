import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Runs Kafka's own translation once per line on stdin, and prints its seconds and how many offsets it found. */
public class TranslateOffsets {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", arguments[0]);
        Pattern all = Pattern.compile(".*");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long start = System.nanoTime();
            var groups = RemoteClusterUtils.translateOffsets(properties, arguments[1], all, Duration.ofMinutes(5));
            double seconds = (System.nanoTime() - start) / 1e9;
            System.out.println(seconds + " " + groups.values().stream().mapToInt(Map::size).sum());
        }
    }
}
