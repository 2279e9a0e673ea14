import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.zip.CRC32;

/** Month end: turns the invoice list (CSV) into the fixed-layout file that the tax office's gateway takes. */
public class InvoiceExport {
    record Invoice(int number, int customer, int day, String currency, char vatClass, long netCents, int quantity,
                   String text) {
        static Invoice parse(String line) {
            String[] f = line.split(";");
            return new Invoice(Integer.parseInt(f[0]), Integer.parseInt(f[1]), Integer.parseInt(f[2]), f[3],
                    f[4].charAt(0), Long.parseLong(f[5]), Integer.parseInt(f[6]), f[7]);
        }

        long vatCents() {
            int permille = switch (vatClass) {
                case 'S' -> 190;
                case 'R' -> 70;
                default -> 0;
            };
            return (netCents * permille + 500) / 1000;
        }
    }

    /** Writes the gateway's record layout. */
    static class RecordWriter implements Closeable {
        private final DataOutputStream out;
        private int records;

        RecordWriter(OutputStream to) throws IOException {
            out = new DataOutputStream(to);
            out.writeBytes("INVX");
            out.writeShort(3);
        }

        void write(Invoice i) throws IOException {
            out.writeByte('R');
            out.writeInt(i.number());
            out.writeInt(i.customer());
            out.writeShort(i.day());
            out.writeBytes(i.currency());
            out.writeByte(i.vatClass());
            out.writeLong(i.netCents());
            out.writeLong(i.vatCents());
            out.writeShort(i.quantity());
            out.writeBytes(fixed(i.text(), 24));
            records++;
        }

        private static String fixed(String s, int width) {
            return s.length() >= width ? s.substring(0, width) : s + " ".repeat(width - s.length());
        }

        @Override
        public void close() throws IOException {
            out.writeByte('E');
            out.writeInt(records);
            out.close();
        }
    }

    public static void main(String[] args) throws IOException {
        boolean buffered = args[0].equals("--buffered");
        Path in = Path.of(args[buffered ? 1 : 0]), target = Path.of(args[buffered ? 2 : 1]);
        Map<String, long[]> totals = new TreeMap<>();
        Map<Integer, Long> byCustomer = new HashMap<>();
        OutputStream file = new FileOutputStream(target.toFile());
        try (BufferedReader r = Files.newBufferedReader(in, StandardCharsets.UTF_8);
             RecordWriter w = new RecordWriter(buffered ? new BufferedOutputStream(file, 1 << 16) : file)) {
            r.readLine();
            for (String line; (line = r.readLine()) != null; ) {
                Invoice i = Invoice.parse(line);
                w.write(i);
                long[] t = totals.computeIfAbsent(i.currency() + "/" + i.vatClass(), k -> new long[3]);
                t[0]++;
                t[1] += i.netCents();
                t[2] += i.vatCents();
                byCustomer.merge(i.customer(), i.netCents(), Long::sum);
            }
        }
        totals.forEach((k, t) -> System.out.printf("%s %d invoices, net %d.%02d, VAT %d.%02d%n", k, t[0],
                t[1] / 100, t[1] % 100, t[2] / 100, t[2] % 100));
        byCustomer.entrySet().stream().sorted(Map.Entry.<Integer, Long>comparingByValue().reversed()
                .thenComparing(Map.Entry.comparingByKey())).limit(3)
                .forEach(e -> System.out.println("top customer " + e.getKey() + " " + e.getValue()));
        CRC32 crc = new CRC32();
        crc.update(Files.readAllBytes(target));
        System.out.printf("%d bytes, crc %08x%n", Files.size(target), crc.getValue());
    }
}
