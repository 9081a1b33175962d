import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;

/** A classic group's record in every version that this Kafka has, empty and with a member: "VERSION MEMBERS HEX". */
public class GroupRecords {
    public static void main(String[] arguments) {
        for (short version = 0; version <= GroupMetadataValue.HIGHEST_SUPPORTED_VERSION; version++) {
            for (int members = 0; members < 2; members++) {
                var value = new GroupMetadataValue().setProtocolType("consumer").setGeneration(5);
                if (members == 1) {
                    value.setProtocol("range").setLeader("m1").setMembers(List.of(new GroupMetadataValue.MemberMetadata()
                        .setMemberId("m1").setClientId("c1").setClientHost("/h").setSessionTimeout(45000)));
                }
                if (version >= 2) {
                    value.setCurrentStateTimestamp(1700000000000L);
                }
                byte[] bytes = MessageUtil.toVersionPrefixedBytes(version, value);
                System.out.println(version + " " + members + " " + HexFormat.of().formatHex(bytes));
            }
        }
    }
}
