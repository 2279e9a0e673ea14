import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;

/** Makes an invoice of each order of a CSV file. */
public final class Invoicer {
    public static void main(String[] args) throws Exception {
        boolean counting = args.length > 2 && args[2].equals("--counting");
        Path folder = Path.of(args[1]);
        InvoiceStore store = counting ? new CountingInvoiceStore(folder, 2024) : new InvoiceStore(folder, 2024);
        int made = 0, last = 0;
        long net = 0;
        try (BufferedReader in = Files.newBufferedReader(Path.of(args[0]))) {
            for (String line; (line = in.readLine()) != null; ) {
                Order o = new Order(line);
                last = store.add(o);
                net += o.net();
                made++;
            }
        }
        System.out.printf("%d invoices, last number %d, net %d.%02d%n", made, last, net / 100, net % 100);
    }
}
