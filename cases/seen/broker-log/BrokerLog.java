import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;

/** Appends messages to a log: length, sequence number, body. A message is durable when append returns. */
public class BrokerLog {
    private final RandomAccessFile log;
    private final boolean oneWrite;
    private long sequence;

    BrokerLog(Path path, boolean oneWrite) throws IOException {
        this.log = new RandomAccessFile(path.toFile(), "rwd");
        this.oneWrite = oneWrite;
        log.seek(log.length());
    }

    void append(byte[] body) throws IOException {
        sequence++;
        if (oneWrite) {
            ByteBuffer b = ByteBuffer.allocate(12 + body.length);
            b.putInt(body.length).putLong(sequence).put(body);
            log.write(b.array());
        } else {
            log.writeInt(body.length);
            log.writeLong(sequence);
            log.write(body);
        }
    }

    public static void main(String[] args) throws IOException {
        Path dir = Path.of(args[1]);
        Path path = dir.resolve("broker.log");
        BrokerLog broker = new BrokerLog(path, args[0].equals("repaired"));
        for (String line : Files.readAllLines(dir.resolve("messages.txt")))
            broker.append(line.getBytes(StandardCharsets.UTF_8));
        broker.log.close();
        CRC32 crc = new CRC32();
        crc.update(Files.readAllBytes(path));
        System.out.printf("%d messages, %d bytes, crc %08x%n", broker.sequence, Files.size(path), crc.getValue());
    }
}
