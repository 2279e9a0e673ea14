import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The folder of one year's invoices, numbered without gaps. */
class InvoiceStore {
    protected final Path folder;
    protected final int year;

    InvoiceStore(Path folder, int year) throws IOException {
        this.folder = Files.createDirectories(folder);
        this.year = year;
    }

    protected Path file(int number) {
        return folder.resolve("RE-" + year + "-" + Integer.toString(100000 + number).substring(1) + ".txt");
    }

    /** The tax office wants no gaps: take the lowest number that is free. */
    int nextNumber() throws IOException {
        int number = 1;
        Path p = file(number);
        while (Files.exists(p)) {
            number++;
            p = file(number);
        }
        return number;
    }

    int add(Order o) throws IOException {
        int number = nextNumber();
        StringBuilder b = new StringBuilder();
        b.append("Rechnung RE-").append(year).append('-').append(number).append("\nTag ").append(o.day)
         .append("\nKunde ").append(o.customer).append("\n\n");
        for (Order.Item i : o.items)
            b.append(String.format("%-8s %4d x %9.2f %11.2f%n", i.sku(), i.quantity(), i.cents() / 100.0, i.total() / 100.0));
        long net = o.net(), vat = Math.round(net * 0.19);
        b.append(String.format("%nnetto %.2f  USt 19%% %.2f  brutto %.2f%n", net / 100.0, vat / 100.0, (net + vat) / 100.0));
        Files.write(file(number), b.toString().getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        return number;
    }
}

/** Looks through the folder once, then counts on. */
class CountingInvoiceStore extends InvoiceStore {
    private int last = 0;

    CountingInvoiceStore(Path folder, int year) throws IOException {
        super(folder, year);
        try (DirectoryStream<Path> all = Files.newDirectoryStream(this.folder, "RE-" + year + "-*.txt")) {
            for (Path p : all) {
                String n = p.getFileName().toString();
                last = Math.max(last, Integer.parseInt(n.substring(8, 13)));
            }
        }
    }

    @Override int nextNumber() {
        return ++last;      // CREATE_NEW still refuses a number that somebody else took
    }
}
