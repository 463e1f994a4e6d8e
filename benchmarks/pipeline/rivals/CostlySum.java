import org.apache.flink.table.functions.AggregateFunction;
import org.apache.flink.table.functions.FunctionContext;

/**
 * A sum of which each tuple costs time. The time is waited, 20 ms at once, since a timer is too coarse for
 * single waits of a few hundred microseconds.
 *
 * <p>The job's parameter {@code cost_us} says how much time a tuple costs. The sum merges, so Flink can also
 * add up before it shuffles.
 */
public class CostlySum extends AggregateFunction<Long, CostlySum.Total> {
    private static final long AT_ONCE_US = 20_000;

    private transient long costUs;
    private transient long owedUs;

    /** What has been added up. */
    public static class Total {
        public long sum;
    }

    @Override
    public void open(FunctionContext context) throws Exception {
        costUs = Long.parseLong(context.getJobParameter("cost_us", "0"));
    }

    @Override
    public Total createAccumulator() {
        return new Total();
    }

    public void accumulate(Total total, Long amount) throws InterruptedException {
        total.sum += amount;
        owedUs += costUs;
        if (owedUs >= AT_ONCE_US) {
            // A sleep is longer than it should be. What it was longer is not owed any more.
            long began = System.nanoTime();
            Thread.sleep(owedUs / 1000);
            owedUs -= (System.nanoTime() - began) / 1000;
        }
    }

    public void merge(Total total, Iterable<Total> others) {
        for (Total other : others) {
            total.sum += other.sum;
        }
    }

    @Override
    public Long getValue(Total total) {
        return total.sum;
    }
}
