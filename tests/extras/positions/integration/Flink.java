import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;

/** Reads tables of Kafka topics in a cluster of this process, from the options that files hold, to the topics' ends. */
public class Flink {
    public static void main(String[] args) throws Exception {
        Configuration small = Configuration.fromMap(Map.of("parallelism.default", "1"));
        EnvironmentSettings settings = EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(small).build();
        TableEnvironment tables = TableEnvironment.create(settings);
        int number = 0;
        for (String options : Files.readAllLines(Path.of(args[1]))) {
            String table = "t" + number++;
            tables.executeSql(
                "CREATE TABLE " + table + " (`partition` INT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL, v STRING)"
                    + " WITH ('connector'='kafka', 'format'='raw', 'properties.bootstrap.servers'='" + args[0]
                    + "', 'scan.bounded.mode'='latest-offset', " + options + ")");
            try (var rows = tables.executeSql("SELECT '" + table + "', `partition`, `offset` FROM " + table).collect()) {
                for (Iterator<Row> each = rows; each.hasNext(); ) {
                    Row row = each.next();
                    System.out.println("READ " + row.getField(0) + " " + row.getField(1) + " " + row.getField(2));
                }
            }
        }
    }
}
