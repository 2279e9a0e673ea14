import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Converts readings.csv (sensor,time,value) into fixed records of 16 bytes. */
public class SensorDump {
    public static void main(String[] args) throws IOException {
        boolean repaired = args[0].equals("repaired");
        Path dir = Path.of(args[1]);
        long readings = 0, sum = 0;
        OutputStream file = new FileOutputStream(dir.resolve("readings.bin").toFile());
        if (repaired)
            file = new BufferedOutputStream(file, 1 << 16);
        try (BufferedReader in = Files.newBufferedReader(dir.resolve("readings.csv"));
             DataOutputStream out = new DataOutputStream(file)) {
            String line;
            while ((line = in.readLine()) != null) {
                int a = line.indexOf(','), b = line.indexOf(',', a + 1);
                int sensor = Integer.parseInt(line, 0, a, 10);
                long time = Long.parseLong(line, a + 1, b, 10);
                float value = Float.parseFloat(line.substring(b + 1));
                out.writeInt(sensor);
                out.writeLong(time);
                out.writeFloat(value);
                sum = sum * 31 + sensor + time + Float.floatToIntBits(value);
                readings++;
            }
        }
        System.out.printf("%d readings, %d bytes, sum %x%n", readings, Files.size(dir.resolve("readings.bin")), sum);
    }
}
