import java.io.*;
import java.math.*;
import java.util.*;

/** Sums a till journal by article and hour. */
public class Till {
    public static void main(String[] a) throws IOException {
        InputStream raw = new FileInputStream(a[0]);
        if (a.length > 1) raw = new BufferedInputStream(raw, 65536);
        Map<String, BigDecimal> sums = new TreeMap<>();
        int n = 0;
        long last = -1;
        try (DataInputStream in = new DataInputStream(raw)) {
            while (true) {
                int till;
                try {
                    till = in.readByte();
                } catch (EOFException e) {
                    break;
                }
                int article = in.readShort();
                int receipt = in.readInt();
                long when = in.readLong();
                int count = in.readShort();
                int tax = in.readShort();
                int price = in.readInt();
                if (receipt <= last) throw new IOException("receipts out of order");
                last = receipt;
                BigDecimal v = BigDecimal.valueOf(price, 2).multiply(BigDecimal.valueOf(count));
                if (tax == 1) v = v.divide(new BigDecimal("1.07"), 6, RoundingMode.HALF_EVEN);
                if (tax == 2) v = v.divide(new BigDecimal("1.19"), 6, RoundingMode.HALF_EVEN);
                sums.merge(article + "/" + when / 3600000 % 24, v, BigDecimal::add);
                n += till >= 0 ? 1 : 0;
            }
        }
        BigDecimal all = BigDecimal.ZERO;
        for (BigDecimal v : sums.values()) all = all.add(v);
        System.out.println(n + " " + sums.size() + " " + all);
    }
}
